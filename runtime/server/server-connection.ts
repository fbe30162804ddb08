/**
 * One connection of a server: the session, the sideband link that it lives and dies with, and how it comes to
 * its end: age, idleness, shutdown. Made by a server when a client's queue pair has been connected.
 */
import { controlText } from '../control/frames.ts';
import type { Prepared } from '../control/handshake/session-setup.ts';
import type { Link } from '../control/link.ts';
import { connectionAgeJitter, goawayNoticeMs } from '../limits.ts';
import type { ResolvedServerOptions } from './server-options.ts';
import type { ServerSession } from './server-session.ts';

export type ConnectionLife = Pick<
  ResolvedServerOptions,
  'connectionAgeMaxMs' | 'connectionIdleMaxMs' | 'connectionAgeGraceMs'
>;

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
  #leaving = false;
  #onLeaving: ((calls: number) => void) | undefined;
  #notice: NodeJS.Timeout | undefined;
  #timers: NodeJS.Timeout[] = [];

  constructor(session: ServerSession, link: Link, prepared: Prepared) {
    this.session = session;
    this.link = link;
    this.prepared = prepared;
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
      const idle = requests === this.session.requests && !this.session.busy;
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
