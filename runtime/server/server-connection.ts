/**
 * One connection of a server. It has a session and a sideband connection, which end together. The connection
 * ends because of its age, idleness or a shutdown of the server. A server creates it when the queue pair is
 * connected to the client's queue pair.
 */

import {
  byeOfSession,
  controlText,
  type Frame,
  type Memory,
  type MemoryEnd,
  type Serve,
  type Unserve,
} from '../control/frames.ts';
import type { MemoryTerms } from '../control/handshake/memory-terms.ts';
import type { SecondSession } from '../control/handshake/second-session.ts';
import type { Prepared } from '../control/handshake/session-setup.ts';
import type { Link } from '../control/link.ts';
import { Status } from '../core/errors/status.ts';
import { stopInterval } from '../core/stop-timer.ts';
import { connectionAgeJitter, goawayNoticeMs } from '../limits.ts';
import type { ResolvedServerOptions } from './server-options.ts';
import type { ServerSession } from './server-session.ts';

export type ConnectionLife = Pick<
  ResolvedServerOptions,
  'connectionAgeMaxMs' | 'connectionIdleMaxMs' | 'connectionAgeGraceMs'
>;

/** The calls that this side makes to the client of a connection, over the second session (reverse/). */
export interface ConnectionCalls {
  /** Runs when the client begins or stops serving. */
  onFrame(frame: Serve | Unserve): void;
  /**
   * Runs when the connection is being drained. No more calls may be made, and the second session must end
   * after the last call.
   */
  drain(reason: string): void;
  /** Runs when the connection has ended. */
  end(reason: string): void;
  /** True while the client serves calls. */
  readonly open: boolean;
}

/** The queue pair for remote memory of a connection (memory/). */
export interface ConnectionMemory {
  /** Runs when the client asks for the queue pair, or ends it. */
  onFrame(frame: Memory | MemoryEnd): void;
  /** Runs when the connection has ended. */
  end(reason: string): void;
  /** True while memory is exposed or operations are in progress. */
  readonly busy: boolean;
}

/**
 * Functions that create the further parts of a connection when a client asks for them. The folders reverse/
 * and memory/ set these functions.
 */
export interface ConnectionFeatures {
  calls?: (connection: ServerConnection) => ConnectionCalls;
  memory?: (connection: ServerConnection) => ConnectionMemory;
}

/** Status and text for a client that requests reverse calls or remote memory and is refused. */
const going = [Status.UNAVAILABLE, 'the connection is about to end'] as const;
const noCalls = [
  Status.UNIMPLEMENTED,
  'this server makes no calls to its clients; it must call peersOf(server) first',
] as const;

const noMemory = [
  Status.UNIMPLEMENTED,
  'this server has no remote memory for its clients; it must call memoryOf(server) first',
] as const;

/**
 * Number of checks for idleness within the time limit. These checks are cheaper than recording the time of
 * each call.
 */
const looksPerLimit = 4;

export class ServerConnection {
  readonly session: ServerSession;
  readonly link: Link;
  readonly prepared: Prepared;
  /**
   * True after the handshake. From then on session and link end together. Before that, the client may try
   * another fabric.
   */
  ready = false;
  /**
   * The session in which this side makes the calls. It is undefined when the client does not support second
   * sessions.
   */
  readonly second: SecondSession | undefined;
  /** The terms of remote memory. They are undefined when the client does not support remote memory. */
  readonly terms: MemoryTerms | undefined;
  readonly #features: ConnectionFeatures;
  #calls: ConnectionCalls | undefined;
  #memory: ConnectionMemory | undefined;
  #leaving = false;
  #onLeaving: ((calls: number) => void) | undefined;
  #notice: NodeJS.Timeout | undefined;
  #timers: NodeJS.Timeout[] = [];

  constructor(
    session: ServerSession,
    link: Link,
    prepared: Prepared,
    second?: SecondSession,
    terms?: MemoryTerms,
    features: ConnectionFeatures = {},
  ) {
    this.session = session;
    this.link = link;
    this.prepared = prepared;
    this.second = second;
    this.terms = terms;
    this.#features = features;
  }

  /** Handles a frame after the handshake. Returns false when this frame is not allowed now. */
  take(frame: Frame): boolean {
    if (frame.type === 'leaving') return this.leaving(frame.calls);
    if (frame.type === 'memory' || frame.type === 'memoryEnd') return this.#takeMemory(frame);
    if (frame.type !== 'serve' && frame.type !== 'unserve') return false;
    if (frame.type === 'serve' && !this.#leaving) this.#calls ??= this.#features.calls?.(this);
    if (this.#calls !== undefined) this.#calls.onFrame(frame);
    else if (frame.type === 'serve') {
      const [code, reason] = this.#leaving ? going : noCalls;
      this.link.send({ type: 'unserve', number: frame.number, reason, code });
    }
    return true;
  }

  #takeMemory(frame: Memory | MemoryEnd): boolean {
    if (frame.type === 'memory' && !this.#leaving) this.#memory ??= this.#features.memory?.(this);
    if (this.#memory !== undefined) this.#memory.onFrame(frame);
    else if (frame.type === 'memory') {
      const [code, reason] = this.#leaving ? going : noMemory;
      this.link.send({ type: 'memoryEnd', number: frame.number, reason, code });
    }
    return true;
  }

  /**
   * True after the first request. The first request counts as the `ready` frame, which may still be on its
   * way.
   */
  get used(): boolean {
    return this.session.requests > 0;
  }

  /** Runs after the handshake. Starts the timers of age and idleness. */
  begin({ connectionAgeMaxMs, connectionIdleMaxMs, connectionAgeGraceMs }: ConnectionLife): void {
    this.ready = true;
    if (connectionAgeMaxMs !== undefined) {
      const ageMs = connectionAgeMaxMs * (1 + connectionAgeJitter * (2 * Math.random() - 1));
      this.#after(ageMs, () => this.#retire('the connection has reached its age', connectionAgeGraceMs));
    }
    if (connectionIdleMaxMs !== undefined) this.#watchIdleness(connectionIdleMaxMs, connectionAgeGraceMs);
  }

  /**
   * Asks the client to make no more calls, and to close the connection after the last response. All calls
   * that the client makes before it reads this request are served, even if they arrive late, because the
   * client reports their number. If the client does not report the number, calls that arrive long afterwards
   * are rejected, so that the client can make them elsewhere.
   */
  leave(reason: string): void {
    if (this.#leaving) return;
    this.#leaving = true;
    this.#stopTimers();
    this.link.send({ type: 'goaway', reason: controlText(reason) });
    this.#calls?.drain(reason);
    this.#notice = setTimeout(() => this.#cut(reason, this.session.calls), goawayNoticeMs).unref();
    this.#onLeaving = (calls) => this.#cut(reason, calls);
  }

  /**
   * Runs when the client has read the goaway and reports how many calls it has made. The calls that have not
   * arrived yet are in flight, so their number is at most the limit of calls in flight. A larger number is
   * therefore reduced to that limit. Returns false when the client was not asked.
   */
  leaving(calls: number): boolean {
    const { inflightMax, streamsMax } = this.prepared;
    this.#onLeaving?.(Math.min(calls, this.session.calls + inflightMax + streamsMax));
    return this.#leaving;
  }

  /** Sends the second goaway. */
  #cut(reason: string, last: number): void {
    clearTimeout(this.#notice);
    this.#onLeaving = undefined;
    this.session.rejectAfter(reason, last);
    this.link.send({ type: 'goaway', reason: controlText(reason), last });
  }

  /** Ends the connection now. Calls in flight fail. */
  close(reason: string): void {
    this.link.close(reason, { type: 'bye', reason: controlText(reason) });
  }

  /** Runs when the session has ended. */
  ended(reason: string): void {
    this.#stopTimers();
    this.#calls?.end(reason);
    this.#memory?.end(reason);
    if (this.ready || this.used) this.link.close(reason, byeOfSession('server', reason));
  }

  #retire(reason: string, graceMs: number): void {
    this.leave(reason);
    this.#after(graceMs, () => this.close(reason));
  }

  #watchIdleness(idleMs: number, graceMs: number): void {
    let { requests } = this.session;
    let quiet = 0;
    const timer = setInterval(() => {
      const busy = this.session.busy || this.#calls?.open === true || this.#memory?.busy === true;
      const idle = requests === this.session.requests && !busy;
      requests = this.session.requests;
      quiet = idle ? quiet + 1 : 0;
      if (quiet < looksPerLimit) return;
      stopInterval(timer);
      this.#retire(`no call in ${idleMs} ms`, graceMs);
    }, idleMs / looksPerLimit);
    this.#timers.push(timer.unref());
  }

  #after(ms: number, then: () => void): void {
    this.#timers.push(setTimeout(then, ms).unref());
  }

  #stopTimers(): void {
    clearTimeout(this.#notice);
    // clearTimeout also stops intervals, because both kinds of timers have the same handle type in Node.
    for (const timer of this.#timers.splice(0)) clearTimeout(timer);
  }
}
