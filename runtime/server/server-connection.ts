/**
 * One connection of a server: its session, its sideband link, which ends together with the session, and the
 * reasons to end it: age, idleness, shutdown. Created by a server when the queue pair is connected to a
 * client's.
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
  /** The client begins or stops serving. */
  onFrame(frame: Serve | Unserve): void;
  /** The connection is being drained: no more calls; the second session ends after the last one. */
  drain(reason: string): void;
  /** The connection has ended. */
  end(reason: string): void;
  /** True while the client serves calls. */
  readonly open: boolean;
}

/** The queue pair for remote memory of a connection (memory/). */
export interface ConnectionMemory {
  /** The client asks for the queue pair, or ends it. */
  onFrame(frame: Memory | MemoryEnd): void;
  /** The connection has ended. */
  end(reason: string): void;
  /** True while memory is exposed, or operations are under way. */
  readonly busy: boolean;
}

/**
 * What the connections of a server have beside calls, created when a client asks for it. Set by reverse/ and
 * memory/.
 */
export interface ConnectionFeatures {
  calls?: (connection: ServerConnection) => ConnectionCalls;
  memory?: (connection: ServerConnection) => ConnectionMemory;
}

/** Status and text for a client that asks for one of them in vain. */
const going = [Status.UNAVAILABLE, 'the connection is about to end'] as const;
const noCalls = [
  Status.UNIMPLEMENTED,
  'this server makes no calls to its clients; it must call peersOf(server) first',
] as const;

const noMemory = [
  Status.UNIMPLEMENTED,
  'this server has no remote memory for its clients; it must call memoryOf(server) first',
] as const;

/** How often idleness is checked within its time limit; that is cheaper than recording each call. */
const looksPerLimit = 4;

export class ServerConnection {
  readonly session: ServerSession;
  readonly link: Link;
  readonly prepared: Prepared;
  /**
   * True after the handshake: from then on session and link end together. Before, the client may try another
   * fabric.
   */
  ready = false;
  /**
   * For a second session, in which this side makes the calls; undefined when the client does not support it.
   */
  readonly second: SecondSession | undefined;
  /** For remote memory; undefined when the client does not support it. */
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

  /** True after the first request, which counts as the `ready` that may still be on its way. */
  get used(): boolean {
    return this.session.requests > 0;
  }

  /** Begins after the handshake. */
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
   * that the client has made until it reads this are served, however late they arrive: the client reports
   * their number. If it does not, calls that arrive long after are rejected, so that it can make them
   * elsewhere.
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
   * The client has read the goaway, and reports how many calls it has made. Calls that have not arrived yet
   * are on their way, so they cannot exceed the limit of calls in flight; a larger number is reduced to that.
   * Returns false when the client was not asked.
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

  /** Ends the connection now; calls in flight fail. */
  close(reason: string): void {
    this.link.close(reason, { type: 'bye', reason: controlText(reason) });
  }

  /** The session has ended. */
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
    // In Node both kinds of timers have the same handle type.
    for (const timer of this.#timers.splice(0)) clearTimeout(timer);
  }
}
