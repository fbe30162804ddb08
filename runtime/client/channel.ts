/**
 * A channel: the way to a service, at one address or several. It connects when the first call needs it, keeps a connection to each address, and
 * gives calls to them in turn. The path of each call begins here; everything that happens to an address is in runtime/client/connections.
 */
import { EventEmitter } from 'node:events';
import { parseAddress } from '../control/address.ts';
import { socketDial } from '../control/dial.ts';
import { type FabricPlan, fabricPlan, offers } from '../control/fabric-options.ts';
import { choiceOf, type LocalSide } from '../control/session-setup.ts';
import { type SessionSummary, summaryOf } from '../control/session-summary.ts';
import { failCall, type Reject, type Resolve, refuseCall, refusedCall } from '../core/failing.ts';
import { failure, intoLent, queueFull, unavailable } from '../core/failure.ts';
import type { Interceptor } from '../core/interceptor.ts';
import { lengthsOf } from '../core/lengths.ts';
import { fabricLog } from '../core/log.ts';
import { checkCallSlots, checkedOptions, checkedTimeMs, checkNames } from '../core/options.ts';
import { RpcError } from '../core/rpc-error.ts';
import { Status } from '../core/status.ts';
import type { CallOptions } from '../core/types.ts';
import { type FabricName, peekContext } from '../lane/contexts.ts';
import { closeTurn, turnNow } from '../lane/deadlines.ts';
import type { FabricContext } from '../lane/fabric-context.ts';
import { Reason } from '../native.ts';
import { CallExtras } from './call-extras.ts';
import { callExtras, callTimeoutMs } from './call-options.ts';
import { type ChannelOptions, type CheckedChannelOptions, channelRules } from './channel-options.ts';
import type { ClientMethod } from './client-method.ts';
import {
  type AddressSummary,
  Connections,
  type ConnectionsOwner,
  type Route,
} from './connections/connections.ts';
import type { EndpointState } from './connections/endpoint.ts';
import { MemoryLine } from './connections/memory-line.ts';
import { ReadyWaiters } from './connections/ready-waiters.ts';
import { type Resolver, targetOf } from './connections/resolver.ts';
import { RetryBudget } from './connections/retry-budget.ts';
import { KeepAlive } from './keep-alive.ts';
import { repeated } from './repeat.ts';
import { ChannelStreams, type StreamChannel } from './stream/channel-streams.ts';
import type { ClientStreams } from './stream/client-streams.ts';
import type { Unsent } from './unsent.ts';
import { WaitingCall, WaitingCalls } from './waiting-calls.ts';

/**
 * `idle`: no connection, the next call makes one. `verifying`: a connection that was silent for long is being tried. `failing`: no connection,
 * and the pause before the next attempt is not over.
 */
export type ChannelState = 'idle' | 'connecting' | 'ready' | 'verifying' | 'failing' | 'closed';

// The executor stores here, so that a call needs no closure for its promise. Taken from here at once: what stayed would keep an answer's memory.
const nobody = (): void => undefined;
let newResolve: Resolve = nobody;
let newReject: Reject = nobody;
function capture(resolve: Resolve, reject: Reject): void {
  newResolve = resolve;
  newReject = reject;
}

export class Channel
  extends EventEmitter<{ state: [state: ChannelState, error: RpcError | undefined] }>
  implements ConnectionsOwner, StreamChannel
{
  /** As given to createChannel; addresses of a list with commas. */
  readonly address: string;
  /** @internal Where streams start. */
  readonly streams: ChannelStreams;
  /** @internal */
  readonly settings: CheckedChannelOptions;
  /** @internal */
  readonly waiting: WaitingCalls = new WaitingCalls(() => this.#whyWaiting());

  readonly #memoryLine = new MemoryLine(({ method, request, deadlineMs, extras, resolve, reject }) =>
    this.#wait(method, request, deadlineMs, extras, resolve, reject),
  );
  readonly #onClosed: Route['onClosed'];
  /** @internal */
  readonly retryBudget: RetryBudget = new RetryBudget();
  readonly #plan: FabricPlan;
  readonly #keepAlive: KeepAlive;
  readonly #connections: Connections;
  readonly #readyWaiters = new ReadyWaiters();
  #state: ChannelState = 'idle';
  #closed: Promise<void> | undefined;

  /** @internal createChannel() is the way to make one */
  constructor(route: Route, options: ChannelOptions | undefined) {
    super();
    this.settings = checkedOptions<CheckedChannelOptions>('createChannel', options, channelRules);
    checkCallSlots('createChannel', this.settings);
    this.#onClosed = route.onClosed;
    this.address = route.address;
    this.streams = new ChannelStreams(this, this.settings.queueMax);
    this.#plan = fabricPlan(options, this.settings, route.fabrics);
    this.#keepAlive = new KeepAlive(() => this.#busy());
    this.#connections = new Connections(route, this);
  }

  /** Changes are events: `channel.on('state', (state, error) => ...)`, with the last error when it is `failing`. */
  get state(): ChannelState {
    return this.#state;
  }

  /** Fabric of the current connection, undefined without one. */
  get fabric(): FabricName | undefined {
    return this.#connections.current?.connection.fabric;
  }

  /** What is behind the channel now, undefined without a connection. With several addresses, that of the next call. */
  get session(): SessionSummary | undefined {
    const connection = this.#connections.current?.connection;
    return connection === undefined ? undefined : summaryOf(connection, connection.serverIdentity);
  }

  /** The addresses in use, each with its state. */
  get addresses(): readonly AddressSummary[] {
    return this.#connections.summary;
  }

  /**
   * Resolves when the channel is connected, with one address at least. Without `timeoutMs` it makes one attempt, at once; with it, attempts with
   * pauses until the time is over, which waits for a server that is still starting. Rejects with UNAVAILABLE, or CANCELLED when `signal` fires.
   */
  async ready(options: { timeoutMs?: number; signal?: AbortSignal } = {}): Promise<void> {
    checkNames('ready', options, ['timeoutMs', 'signal']);
    const { signal, timeoutMs } = options;
    if (timeoutMs !== undefined) checkedTimeMs('ready: timeoutMs', timeoutMs);
    if (this.#closed !== undefined) throw unavailable(`${this.address}: the channel is closed`);
    if (this.#connections.current !== undefined) return;
    const ready = this.#readyWaiters.wait(this.address, timeoutMs, signal, () => this.#connections.lastError);
    this.#connections.seek(timeoutMs === undefined);
    try {
      await ready;
    } catch (error) {
      // One of its own, with a stack that ends at who waits: several may wait for the same.
      const { code, rawMessage, cause } = RpcError.from(error);
      throw new RpcError(code, rawMessage, { sent: 'no', cause: cause ?? error });
    }
  }

  /** Ends all connections. Calls in flight and waiting ones fail with UNAVAILABLE. Resolves when nothing of them is left. */
  close(): Promise<void> {
    this.#closed ??= this.#end();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal Where leases for the channel come from: the context behind it, or the one that its first fabric will have. */
  get context(): FabricContext {
    const current = this.#connections.current?.connection.context;
    if (current !== undefined) return current;
    const side = this.side();
    const fabric = side.fabrics[0]!;
    if (side.isolated)
      throw unavailable(
        `${this.address}: a channel with isolation 'session' has memory only while it is connected; await ready() first`,
      );
    return peekContext(choiceOf(side, fabric));
  }

  /** @internal */
  get interceptors(): readonly Interceptor[] {
    return this.settings.interceptors;
  }

  /** @internal Of calls that have no limit of their own, -1 for none. */
  get defaultTimeoutMs(): number {
    return this.settings.timeoutMs;
  }

  /** @internal The start of every call. */
  unary(method: ClientMethod, request: unknown, options: CallOptions | undefined): Promise<unknown> {
    if (options !== undefined && (options.retry !== undefined || options.hedging !== undefined))
      return repeated(this, method, request, options);
    return this.attempt(method, request, options);
  }

  /** @internal */
  attempt(method: ClientMethod, request: unknown, options: CallOptions | undefined): Promise<unknown> {
    let timeoutMs = method.timeoutMs;
    let extras: CallExtras | undefined;
    if (options !== undefined) {
      try {
        timeoutMs = callTimeoutMs(options, timeoutMs);
        extras = callExtras(method.path, options);
      } catch (error) {
        return refusedCall(error);
      }
    }
    let deadlineMs = 0;
    if (timeoutMs >= 0) {
      if (timeoutMs === 0)
        return refusedCall(failure(Reason.deadline, method.path, 'no', 'no time was left'));
      deadlineMs = turnNow() + timeoutMs;
    }
    if (!this.#keepAlive.running) this.#wake();
    const promise = new Promise<unknown>(capture);
    const resolve = newResolve;
    const reject = newReject;
    newResolve = newReject = nobody;
    if (extras?.into?.lend(promise) === false) return refusedCall(intoLent(method.path));
    const { current } = this.#connections;
    if (
      current === undefined ||
      this.waiting.size !== 0 ||
      !current.session.start(method, request, deadlineMs, extras, resolve, reject)
    ) {
      this.#wait(method, request, deadlineMs, extras, resolve, reject);
    } else if (this.#connections.several) this.#connections.rotate();
    return promise;
  }

  /** @internal */
  get openStreams(): ClientStreams | undefined {
    const { current, ready } = this.#connections;
    if (current?.streams.full !== true) return current?.streams;
    return (ready.find(({ streams }) => !streams.full) ?? current).streams;
  }

  /** @internal */
  onStreamStarted(): void {
    if (this.#connections.several) this.#connections.rotate();
  }

  /** @internal */
  admit(path: string): Error | undefined {
    if (this.#closed !== undefined) return unavailable(`${path}: the channel is closed`);
    if (!this.#keepAlive.running) this.#wake();
    return undefined;
  }

  /** @internal */
  connectForWaiting(): void {
    if (this.#state === 'failing') this.streams.failImpatient((path) => this.#unconnected(path));
    if (this.streams.size > 0) this.#connections.seek(false);
  }

  /** @internal Sends what waits, as far as there is room. */
  pump(): void {
    if (this.streams.size !== 0) this.streams.pump();
    this.waiting.startAll((call) => this.#startSomewhere(call));
  }

  /** @internal */
  onSlotsFree(): void {
    this.pump();
  }

  /** @internal Somebody waits for a connection, however long it takes. */
  get wanted(): boolean {
    return this.waiting.size + this.#memoryLine.size + this.streams.size + this.#readyWaiters.size > 0;
  }

  /** @internal What this side offers in a handshake. */
  side(): LocalSide {
    const { inflightMax, streamsMax, maxMessageBytes, identity, log } = this.settings;
    const own = { role: 'client', inflightMax, streamsMax, maxMessageBytes, identity } as const;
    return { ...own, log: fabricLog(log), ...offers(this.#plan) };
  }

  /** @internal Something has happened to a connection: what follows for calls and for those who wait. */
  onChange(state: EndpointState): void {
    if (this.#closed !== undefined) return;
    this.#setState(state === 'ejected' ? 'ready' : state);
    if (this.#connections.current !== undefined) {
      this.#readyWaiters.resolveAll();
      this.pump();
      this.#memoryLine.onSlotsFree();
    } else if (state === 'failing') {
      const { lastError } = this.#connections;
      this.#readyWaiters.rejectImpatient(lastError ?? unavailable(`${this.address}: not connected`));
      this.waiting.failImpatient((method) => this.#unconnected(method.path));
      this.streams.failImpatient((path) => this.#unconnected(path));
    } else if (state === 'idle' && this.wanted) this.#connections.seek(false);
  }

  /** @internal A call that no handler has seen goes back into the queue, once. */
  takeBack(call: Unsent): boolean {
    const { method, request, deadlineMs, resolve, reject } = call;
    const extras = call.extras ?? new CallExtras({}, undefined);
    if (extras.retried || this.#closed !== undefined || this.waiting.size >= this.settings.queueMax)
      return false;
    // What it was sent with is not known any more.
    if (lengthsOf(method.requestType, request)?.resizable === true) return false;
    extras.retried = true;
    this.waiting.push(new WaitingCall(this.waiting, method, request, deadlineMs, extras, resolve, reject));
    if (this.#connections.current === undefined) this.onChange(this.#connections.state);
    return true;
  }

  /** @internal */
  awaitMemory(call: Unsent, context: FabricContext, bytes: number): boolean {
    return this.#closed === undefined && this.#memoryLine.add(call, context, bytes, this.settings.queueMax);
  }

  /** Calls that the server has not let go of can take all call slots: that must not look like a queue that is too short. */
  #whyWaiting(): string {
    const held = this.#connections.ready.reduce((sum, { session }) => sum + session.held, 0);
    if (held === 0) return '';
    const calls = held === 1 ? '1 call slot is' : `${held} call slots are`;
    return `${calls} held by calls that were given up and that the server has not let go of`;
  }

  /** On the first connection that has room. */
  #startSomewhere({ method, request, deadlineMs, extras, resolve }: Unsent): boolean {
    const connections = this.#connections;
    // Mostly it is an event that has made room, and nobody's call.
    const reject: Reject = (error) => failCall(resolve, error);
    for (let tries = connections.ready.length; tries > 0; --tries) {
      const { current } = connections;
      if (current === undefined) return false;
      const started = current.session.start(method, request, deadlineMs, extras, resolve, reject);
      if (connections.several) connections.rotate();
      if (started) return true;
    }
    for (const link of connections.ready) if (!link.session.full) link.connection.context.awaitSlots(this);
    return false;
  }

  #wait(
    method: ClientMethod,
    request: unknown,
    deadlineMs: number,
    extras: CallExtras | undefined,
    resolve: Resolve,
    reject: Reject,
  ): void {
    // Nothing was staged, so nothing else would.
    closeTurn();
    const call = new WaitingCall(this.waiting, method, request, deadlineMs, extras, resolve, reject);
    if (this.#closed !== undefined) {
      refuseCall(reject, () => unavailable(`${method.path}: the channel is closed`));
    } else if (this.waiting.size === 0 && this.#startSomewhere(call)) {
      // Another connection had room.
    } else if (this.#state === 'failing' && !call.patient) {
      refuseCall(reject, () => this.#unconnected(method.path));
    } else if (this.waiting.size >= this.settings.queueMax) {
      const why = this.waiting.why();
      refuseCall(reject, () => queueFull(method.path, this.settings.queueMax, why));
    } else {
      this.waiting.push(call);
      if (this.#connections.current === undefined) this.#connections.seek(false);
    }
  }

  /** The first call after a silence. */
  #wake(): void {
    const silentMs = this.#keepAlive.start();
    if (silentMs >= this.settings.verifyAfterMs) this.#connections.verify();
  }

  #setState(state: ChannelState): void {
    if (state === this.#state) return;
    this.#state = state;
    if (this.listenerCount('state') === 0) return;
    const error = state === 'failing' ? this.#connections.lastError : undefined;
    // Later, so that a listener cannot call into the middle of a change.
    queueMicrotask(() => this.emit('state', state, error));
  }

  #unconnected(path: string): RpcError {
    const cause = this.#connections.lastError;
    const why = cause?.rawMessage ?? 'not connected';
    return new RpcError(cause?.code ?? Status.UNAVAILABLE, `${path}: ${why}`, { sent: 'no', cause });
  }

  #busy(): boolean {
    return this.waiting.size + this.#memoryLine.size + this.streams.size > 0 || this.#connections.busy;
  }

  async #end(): Promise<void> {
    const reason = 'the channel was closed';
    this.#setState('closed');
    const ended = this.#connections.close(reason);
    this.waiting.failAll((method) => unavailable(`${method.path}: ${reason}`));
    this.#memoryLine.failAll((method) => unavailable(`${method.path}: ${reason}`));
    this.streams.failAll((path) => unavailable(`${path}: ${reason}`));
    this.#readyWaiters.rejectAll(unavailable(`${this.address}: ${reason}`));
    await ended;
    this.#keepAlive.stop();
    await this.#onClosed?.();
  }
}

/**
 * A channel to `host:port`, `[ipv6]:port` or `unix:/path`; to several of them, as a list or with commas between; to all addresses of a name,
 * `dns:///host:port`; or to what a {@link Resolver} says. Does not connect yet. Throws for a bad address or option.
 */
export function createChannel(
  address: string | readonly string[] | Resolver,
  options?: ChannelOptions,
): Channel {
  const { name, ...target } = targetOf(address);
  const dial: Route['dial'] = (signal, to) => socketDial(parseAddress(to))(signal);
  return new Channel({ address: name, ...target, dial }, options);
}
