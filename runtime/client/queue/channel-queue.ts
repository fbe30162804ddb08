/**
 * How calls and streams of a channel get onto its connections: at once where there is room, otherwise out of
 * a queue, in order. Streams have a queue of their own, so that neither holds up the other, and so have calls
 * whose request finds no memory. Owned by a channel, handed down to its connections, on its JS thread.
 */

import type { FabricContext } from '../../boundary/fabric-context.ts';
import { closeTurnSoon } from '../../boundary/time/deadlines.ts';
import type { ResourceWaiter } from '../../boundary/waiting/resource-waiters.ts';
import { queueFull, unavailable } from '../../core/errors/failure.ts';
import { lengthsOf } from '../../core/lengths.ts';
import { inRoot } from '../../core/scopes.ts';
import type { Connections } from '../connections/connections.ts';
import { CallExtras } from '../session/call-extras.ts';
import type { ClientSession } from '../session/client-session.ts';
import type { ClientStream, StreamHost } from '../stream/client-stream.ts';
import type { ClientStreams } from '../stream/client-streams.ts';
import type { CallQueue } from './call-queue.ts';
import { ShortCalls } from './short-calls.ts';
import type { Unsent } from './unsent.ts';
import type { Waiter, WaitQueue } from './wait-queue.ts';
import { WaitingCall, WaitingCalls } from './waiting-calls.ts';
import { type WaitingStream, WaitingStreams } from './waiting-streams.ts';

/** The channel. */
export interface QueueOwner {
  readonly settings: { readonly queueMax: number };
  /** It takes no calls any more. */
  readonly closed: boolean;
  /** Why, for calls that come later. */
  readonly whyClosed: string;
  /** The last attempt to connect has failed, and the pause before the next is not over. */
  readonly failing: boolean;
  /** What the calls end with that do not outlast that. */
  unconnected(path: string): Error;
  /** A stream begins. */
  wake(): void;
}

function startOn(session: ClientSession, call: WaitingCall): boolean {
  const { method, request, deadlineMs, extras, resolve } = call;
  // Mostly it is an event that has made room, and nobody's call.
  return session.start(method, request, deadlineMs, extras, resolve, true);
}

export class ChannelQueue implements CallQueue, StreamHost, ResourceWaiter {
  readonly waiting: WaitingCalls = new WaitingCalls(
    () => this.#whyWaiting(),
    () => this.#whyNotConnected(),
  );
  readonly streams: WaitingStreams = new WaitingStreams();
  readonly #owner: QueueOwner;
  readonly #short = new ShortCalls(({ method, request, deadlineMs, extras, resolve }) =>
    this.enter(new WaitingCall(this.waiting, method, request, deadlineMs, extras, resolve)),
  );
  #connections!: Connections;
  #pumpsLater = false;

  constructor(owner: QueueOwner) {
    this.#owner = owner;
  }

  /** What its calls go out on; before the first call. */
  set connections(connections: Connections) {
    this.#connections = connections;
  }

  /** Calls and streams that wait. */
  get size(): number {
    return this.waiting.size + this.#short.size + this.streams.size;
  }

  /** Those of the connection for the next stream, undefined without one. */
  get openStreams(): ClientStreams | undefined {
    const { current, ready } = this.#connections;
    if (current?.streams.full !== true) return current?.streams;
    return (ready.find(({ streams }) => !streams.full) ?? current).streams;
  }

  /** When those end that wait for a connection, ms; Infinity for no deadline. */
  *deadlines(): Generator<number> {
    for (const { endMs } of this.waiting) yield endMs;
    for (const { endMs } of this.streams) yield endMs;
  }

  /** A call of `waiting` that the connection whose turn it is has not taken. */
  enter(call: WaitingCall): void {
    // Nothing was staged, so nothing else would. Not at once: that reads the clock for each call of many that
    // wait.
    closeTurnSoon();
    this.#admit(call, this.waiting, this.#startCall, this.waiting.why);
  }

  startStream(stream: ClientStream): void {
    if (!this.#owner.closed) this.#owner.wake();
    this.#admit(this.streams.waiter(stream), this.streams, this.#openStream);
  }

  forgetStream(stream: ClientStream): void {
    this.streams.forget(stream);
  }

  /**
   * In the root: another's call, or an event, may have made room, and a getter of a request belongs to
   * neither.
   */
  pump(): void {
    if (this.size !== 0) inRoot(this.#pump, this);
  }

  #pump(): void {
    if (this.streams.size !== 0) this.streams.startAll(this.#openStream);
    this.waiting.startAll(this.#startCall);
  }

  /** One run for a whole batch: a look after each call is a third of what waiting costs. */
  pumpAfter(context: FabricContext): void {
    if (this.#pumpsLater) return;
    this.#pumpsLater = context.waiters.wait('turn', this);
    if (!this.#pumpsLater) this.pump();
  }

  /** There is a send slot, or the batch is over. */
  retry(): boolean {
    this.#pumpsLater = false;
    this.pump();
    return false;
  }

  /** There is a connection. */
  onConnected(): void {
    this.pump();
    this.#short.retryAll();
  }

  /** An attempt to connect has failed. */
  onUnconnected(): void {
    this.waiting.failUnlessWaitForReady((path) => this.#owner.unconnected(path));
    this.streams.failUnlessWaitForReady((path) => this.#owner.unconnected(path));
  }

  /** The channel is closed. */
  failAll(reason: string): void {
    const errorFor = (path: string): Error => unavailable(`${path}: ${reason}`);
    this.waiting.failAll(errorFor);
    this.#short.failAll(errorFor);
    this.streams.failAll(errorFor);
  }

  /** It goes to the end of the queue, once. */
  requeue(call: Unsent, turnedAway = false): boolean {
    const { method, request, deadlineMs, resolve } = call;
    const extras = call.extras ?? new CallExtras({}, undefined);
    const waits = turnedAway && (extras.waitForReady ?? method.waitForReady);
    if (
      (extras.retried && !waits) ||
      this.#owner.closed ||
      this.waiting.size >= this.#owner.settings.queueMax
    )
      return false;
    // What it was sent with is not known any more.
    if (lengthsOf(method.requestType, request)?.resizable === true) return false;
    extras.retried = true;
    this.waiting.push(new WaitingCall(this.waiting, method, request, deadlineMs, extras, resolve));
    this.#connections.reconsider();
    return true;
  }

  awaitMemory(call: Unsent, context: FabricContext, bytes: number): boolean {
    return !this.#owner.closed && this.#short.add(call, context, bytes, this.#owner.settings.queueMax);
  }

  /** Sends a call or a stream, lets it into its queue, or refuses it. */
  #admit<Entry extends Waiter>(
    entry: Entry,
    queue: WaitQueue<Entry>,
    start: (entry: Entry) => boolean,
    why?: () => string,
  ): void {
    const owner = this.#owner;
    const { path } = entry;
    if (owner.closed) {
      entry.refuse(() => unavailable(`${path}: ${owner.whyClosed}`));
    } else if (queue.size === 0 && start(entry)) {
      // There was room.
    } else if (owner.failing && !entry.waitForReady) {
      entry.refuse(() => owner.unconnected(path));
    } else if (queue.size >= owner.settings.queueMax) {
      const reason = why?.();
      entry.refuse(() => queueFull(path, owner.settings.queueMax, reason));
    } else {
      queue.push(entry);
      if (this.#connections.current === undefined) this.#connections.await(entry.endMs);
    }
  }

  /** On the first connection that has room. */
  readonly #startCall = (call: WaitingCall): boolean => {
    const connections = this.#connections;
    for (let tries = connections.ready.length; tries > 0; --tries) {
      const { current } = connections;
      if (current === undefined) return false;
      // Each call that ends makes room for one, so mostly there is none for the next.
      const started = !current.session.full && startOn(current.session, call);
      if (connections.several) connections.rotate();
      if (started) return true;
    }
    for (const link of connections.ready)
      if (!link.session.full) link.connection.context.waiters.wait('slot', this);
    return false;
  };

  /** On the connection whose turn it is, or one that has a place for it. */
  readonly #openStream = (entry: WaitingStream): boolean => {
    const streams = this.openStreams;
    if (streams === undefined) return false;
    const { stream } = entry;
    if (stream.open(streams)) {
      if (this.#connections.several) this.#connections.rotate();
      return true;
    }
    // Another one may be ready, and nothing would say so later.
    if (streams.target.gone === true && this.openStreams !== streams) return this.#openStream(entry);
    if (!streams.full) streams.context.waiters.wait('slot', this);
    return false;
  };

  /** What the last attempt to connect has failed with, while there is no connection. */
  #whyNotConnected(): Error | undefined {
    const { ready, lastError } = this.#connections;
    return ready.length === 0 ? lastError : undefined;
  }

  /**
   * Calls that the server has not let go of can take all call slots: that must not look like a queue that is
   * too short. And who waits for a server that is not there, or that refuses this client, must hear of that
   * and not of time alone.
   */
  #whyWaiting(): string {
    const error = this.#whyNotConnected();
    if (error !== undefined) return error.message;
    const held = this.#connections.ready.reduce((sum, { session }) => sum + session.held, 0);
    if (held === 0) return '';
    const calls = held === 1 ? '1 call slot is' : `${held} call slots are`;
    return `${calls} held by calls that were given up and that the server has not let go of`;
  }
}
