/**
 * Sends calls and streams of a channel over its connections. It sends them at once when there is room,
 * otherwise from a queue, in order. Streams have a separate queue, so that calls and streams do not block
 * each other. Calls whose request finds no memory also have a separate queue. A channel owns this object and
 * passes it to its connections, on the JS thread of the channel.
 */

import type { FabricContext } from '../../boundary/fabric-context.ts';
import { closeTurnSoon } from '../../boundary/time/deadlines.ts';
import type { ResourceWaiter } from '../../boundary/waiting/resource-waiters.ts';
import { queueFull, unavailable } from '../../core/errors/failure.ts';
import { lengthsOf } from '../../core/lengths.ts';
import { inRoot } from '../../core/scopes.ts';
import type { Connections } from '../connections/connections.ts';
import { takesCall, takesStream } from '../connections/ready-server.ts';
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
  /** True when the channel takes no more calls. */
  readonly closed: boolean;
  /** The error text for later calls. */
  readonly whyClosed: string;
  /** True when the last attempt to connect has failed and the pause after it is not over. */
  readonly failing: boolean;
  /** Returns the error for calls that do not wait for another attempt. */
  unconnected(path: string): Error;
  /** Runs when a stream begins. */
  wake(): void;
}

function startOn(session: ClientSession, call: WaitingCall): boolean {
  const { method, request, deadlineMs, extras, resolve } = call;
  // Starts a waiting call on a session. Events run in the root context, because most of them do not belong to
  // a call.
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

  /** Sets the connections that calls use. Runs before the first call. */
  set connections(connections: Connections) {
    this.#connections = connections;
  }

  /** Number of waiting calls and streams. */
  get size(): number {
    return this.waiting.size + this.#short.size + this.streams.size;
  }

  /**
   * The streams of a connection with a free slot or, when no connection has one, of any connection. They are
   * undefined when the channel is not connected.
   */
  get openStreams(): ClientStreams | undefined {
    const { current, ready } = this.#connections;
    if (current?.streams.full !== true) return current?.streams;
    return (ready.find(({ streams }) => !streams.full) ?? current).streams;
  }

  /**
   * Returns the deadlines in milliseconds of the calls and streams that wait for a connection. Infinity
   * stands for no deadline.
   */
  *deadlines(): Generator<number> {
    for (const { endMs } of this.waiting) yield endMs;
    for (const { endMs } of this.streams) yield endMs;
  }

  /** Sends a call that the current connection has not accepted, or adds it to the queue `waiting`. */
  enter(call: WaitingCall): void {
    // Because nothing was staged, no flush would close the turn (deadlines.ts). The turn is not closed at
    // once, because then each of many waiting calls would read the clock.
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
   * Sends waiting calls in the root context. Another call or an event may have made room, and a getter of a
   * request must not run in the context of that call or event.
   */
  pump(): void {
    if (this.size !== 0) inRoot(this.#pump, this);
  }

  #pump(): void {
    if (this.streams.size !== 0) this.streams.startAll(this.#openStream);
    this.waiting.startAll(this.#startCall);
  }

  /**
   * Calls `pump` once for the whole batch, because a check after each call is a third of the cost of waiting.
   */
  pumpAfter(context: FabricContext): void {
    if (this.#pumpsLater) return;
    this.#pumpsLater = context.waiters.wait('turn', this);
    if (!this.#pumpsLater) this.pump();
  }

  /** Runs when a send slot is free or the batch has ended. */
  retry(): boolean {
    this.#pumpsLater = false;
    this.pump();
    return false;
  }

  /** Runs when a connection is ready. */
  onConnected(): void {
    this.pump();
    this.#short.retryAll();
  }

  /** Runs when an attempt to connect has failed. */
  onUnconnected(): void {
    this.waiting.failUnlessWaitForReady((path) => this.#owner.unconnected(path));
    this.streams.failUnlessWaitForReady((path) => this.#owner.unconnected(path));
  }

  /** Runs when the channel has been closed. */
  failAll(reason: string): void {
    const errorFor = (path: string): Error => unavailable(`${path}: ${reason}`);
    this.waiting.failAll(errorFor);
    this.#short.failAll(errorFor);
    this.streams.failAll(errorFor);
  }

  /** Adds the call to the end of the queue, unless it has already been sent a second time. */
  requeue(call: Unsent, rejected = false): boolean {
    const { method, request, deadlineMs, resolve } = call;
    const extras = call.extras ?? new CallExtras({}, undefined);
    const waits = rejected && (extras.waitForReady ?? method.waitForReady);
    if (
      (extras.retried && !waits) ||
      this.#owner.closed ||
      this.waiting.size >= this.#owner.settings.queueMax
    )
      return false;
    // The buffers of the request may have changed since it was sent.
    if (lengthsOf(method.requestType, request)?.resizable === true) return false;
    extras.retried = true;
    this.waiting.push(new WaitingCall(this.waiting, method, request, deadlineMs, extras, resolve));
    this.#connections.reconsider();
    return true;
  }

  awaitMemory(call: Unsent, context: FabricContext, bytes: number): boolean {
    return !this.#owner.closed && this.#short.add(call, context, bytes, this.#owner.settings.queueMax);
  }

  /** Sends a call or a stream, adds it to its queue, or refuses it. */
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
      // The entry was sent.
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

  /** Tries the connections that the policy chooses, until one takes the call. */
  readonly #startCall = (call: WaitingCall): boolean => {
    const connections = this.#connections;
    for (let tries = connections.ready.length; tries > 0; --tries) {
      const link = connections.for(takesCall, call.extras?.metadata);
      // Each ended call makes room for one call, so there is usually no room for the next call.
      if (link === undefined || link.session.full) break;
      if (startOn(link.session, call)) return true;
    }
    for (const link of connections.ready)
      if (!link.session.full) link.connection.context.waiters.wait('slot', this);
    return false;
  };

  /** Opens a stream on the connection that the policy chooses among the connections with a free slot. */
  readonly #openStream = (entry: WaitingStream): boolean => {
    const { stream } = entry;
    const link = this.#connections.for(takesStream, stream.extras?.metadata);
    if (link === undefined) return false;
    const { streams } = link;
    if (stream.open(streams)) return true;
    // If this connection was lost, the stream is tried again, because another connection may be ready and no
    // later event would report that.
    if (streams.target.gone === true && !this.#connections.ready.includes(link))
      return this.#openStream(entry);
    if (!streams.full) streams.context.waiters.wait('slot', this);
    return false;
  };

  /**
   * Returns the reason why the last attempt to connect has failed, or undefined while a connection is ready.
   */
  #whyNotConnected(): Error | undefined {
    const { ready, lastError } = this.#connections;
    return ready.length === 0 ? lastError : undefined;
  }

  /**
   * Returns what a call waits for, for the error text. A caller that waits for a server which is unreachable
   * or refuses it must learn this reason, and not only that time has passed. Cancelled calls that the server
   * has not released can occupy all call slots, and the error must not look like a queue limit then.
   */
  #whyWaiting(): string {
    const error = this.#whyNotConnected();
    if (error !== undefined) return error.message;
    const held = this.#connections.ready.reduce((sum, { session }) => sum + session.held, 0);
    if (held === 0) return '';
    const calls = held === 1 ? '1 call slot is' : `${held} call slots are`;
    return `${calls} in use by cancelled calls whose end the server has not confirmed`;
  }
}
