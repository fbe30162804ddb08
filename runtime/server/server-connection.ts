/**
 * One connection of a server: the session, the sideband link that it lives and dies with, and how it comes to
 * its end: age, idleness, shutdown. Made by a server when a client's queue pair has been connected.
 */
import { controlText, type Frame, type Serve, type Unserve } from '../control/frames.ts';
import type { SecondSession } from '../control/handshake/second-session.ts';
import type { Prepared } from '../control/handshake/session-setup.ts';
import type { Link } from '../control/link.ts';
import { Status } from '../core/errors/status.ts';
import { connectionAgeJitter, goawayNoticeMs } from '../limits.ts';
import type { ResolvedServerOptions } from './server-options.ts';
import type { ServerSession } from './server-session.ts';

export type ConnectionLife = Pick<
  ResolvedServerOptions,
  'connectionAgeMaxMs' | 'connectionIdleMaxMs' | 'connectionAgeGraceMs'
>;

/** The calls that this side makes to the client of a connection, over its second session (reverse/). */
export interface ConnectionCalls {
  /** The client serves, or serves no more. */
  onFrame(frame: Serve | Unserve): void;
  /** The connection goes: no more calls, and the session ends with the last one. */
  drain(reason: string): void;
  /** The connection is over. */
  end(reason: string): void;
  /** The client serves now, so it waits for calls. */
  readonly open: boolean;
}

/** What a client learns that wants to serve in vain. */
const going = [Status.UNAVAILABLE, 'the connection is about to end'] as const;
const noCalls = [
  Status.UNIMPLEMENTED,
  'this server makes no calls to its clients; it has to, by peersOf(server)',
] as const;

/** Idleness is looked for that often within its limit, rather than noted with each call. */
const looksPerLimit = 4;

export class ServerConnection {
  readonly session: ServerSession;
  readonly link: Link;
  readonly prepared: Prepared;
  /**
   * The handshake is over: from now on session and link end together. Until then the client may try another
   * fabric.
   */
  ready = false;
  /** How this side gets a session for calls of its own; undefined when the client knows of none. */
  readonly second: SecondSession | undefined;
  /** Makes the calls of the other direction, when the client asks for it the first time. */
  readonly #makeCalls: (connection: ServerConnection) => ConnectionCalls | undefined;
  #calls: ConnectionCalls | undefined;
  #leaving = false;
  #onLeaving: ((calls: number) => void) | undefined;
  #notice: NodeJS.Timeout | undefined;
  #timers: NodeJS.Timeout[] = [];

  constructor(
    session: ServerSession,
    link: Link,
    prepared: Prepared,
    second?: SecondSession,
    makeCalls: (connection: ServerConnection) => ConnectionCalls | undefined = () => undefined,
  ) {
    this.session = session;
    this.link = link;
    this.prepared = prepared;
    this.second = second;
    this.#makeCalls = makeCalls;
  }

  /** A frame that has come behind the handshake. Returns false when it is none that may come now. */
  take(frame: Frame): boolean {
    if (frame.type === 'leaving') return this.leaving(frame.calls);
    if (frame.type !== 'serve' && frame.type !== 'unserve') return false;
    if (frame.type === 'serve' && !this.#leaving) this.#calls ??= this.#makeCalls(this);
    if (this.#calls !== undefined) this.#calls.onFrame(frame);
    else if (frame.type === 'serve') {
      const [code, reason] = this.#leaving ? going : noCalls;
      this.link.send({ type: 'unserve', number: frame.number, reason, code });
    }
    return true;
  }

  /** There has been a request, which counts as the `ready` that may still be on its way. */
  get used(): boolean {
    return this.session.requests > 0;
  }

  /** The handshake is over. */
  begin({ connectionAgeMaxMs, connectionIdleMaxMs, connectionAgeGraceMs }: ConnectionLife): void {
    this.ready = true;
    if (connectionAgeMaxMs !== undefined) {
      const ageMs = connectionAgeMaxMs * (1 + connectionAgeJitter * (2 * Math.random() - 1));
      this.#after(ageMs, () => this.#retire('the connection has reached its age', connectionAgeGraceMs));
    }
    if (connectionIdleMaxMs !== undefined) this.#watchIdleness(connectionIdleMaxMs, connectionAgeGraceMs);
  }

  /**
   * Asks the client to make no more calls and to go after its last answer. All that it has made by the time
   * it reads that are served, however long they take to come: it says how many they are. From one that does
   * not say so, those that come long after are turned away, so it may make them elsewhere.
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
   * The client has read that, and says how many calls it will have made. Those that are yet to come are under
   * way by now, so there are no more than may be in flight: a client that names a larger number is turned
   * away all the same. Returns false when nobody has asked.
   */
  leaving(calls: number): boolean {
    const { inflightMax, streamsMax } = this.prepared;
    this.#onLeaving?.(Math.min(calls, this.session.calls + inflightMax + streamsMax));
    return this.#leaving;
  }

  /** The second goaway. */
  #cut(reason: string, last: number): void {
    clearTimeout(this.#notice);
    this.#onLeaving = undefined;
    this.session.turnAway(reason, last);
    this.link.send({ type: 'goaway', reason: controlText(reason), last });
  }

  /** Ends it now; calls under way fail. */
  close(reason: string): void {
    this.link.close(reason, { type: 'bye', reason: controlText(reason) });
  }

  /** The session is down. */
  ended(reason: string): void {
    this.#stopTimers();
    this.#calls?.end(reason);
    if (this.ready || this.used) this.close(reason);
  }

  #retire(reason: string, graceMs: number): void {
    this.leave(reason);
    this.#after(graceMs, () => this.close(reason));
  }

  #watchIdleness(idleMs: number, graceMs: number): void {
    let { requests } = this.session;
    let quiet = 0;
    const timer = setInterval(() => {
      const busy = this.session.busy || this.#calls?.open === true;
      const idle = requests === this.session.requests && !busy;
      requests = this.session.requests;
      quiet = idle ? quiet + 1 : 0;
      if (quiet < looksPerLimit) return;
      clearInterval(timer);
      this.#retire(`no call in ${idleMs} ms`, graceMs);
    }, idleMs / looksPerLimit);
    this.#timers.push(timer.unref());
  }

  #after(ms: number, then: () => void): void {
    this.#timers.push(setTimeout(then, ms).unref());
  }

  #stopTimers(): void {
    clearTimeout(this.#notice);
    // One kind of handle for both in Node.
    for (const timer of this.#timers.splice(0)) clearTimeout(timer);
  }
}
