/**
 * A channel: connections to a service at one or several addresses. It connects when the first call needs a
 * connection, keeps a connection to each address, and distributes calls over them. The path of each call
 * begins here. The code for one address is in runtime/client/connections.
 */
import { EventEmitter } from 'node:events';
import { peekContext } from '../boundary/contexts.ts';
import type { FabricContext } from '../boundary/fabric-context.ts';
import { turnNow } from '../boundary/time/deadlines.ts';
import { clockMs } from '../clock.ts';
import { type FabricPlan, fabricPlan, offers } from '../control/fabric-options.ts';
import type { Connection } from '../control/handshake/client-handshake.ts';
import { choiceOf, isAlone, type LocalSide } from '../control/handshake/session-setup.ts';
import { type SessionSummary, summaryOf } from '../control/session-summary.ts';
import { parseAddress } from '../control/socket/address.ts';
import { patient, socketDial } from '../control/socket/dial.ts';
import { TlsDial } from '../control/tls/tls-client.ts';
import { type Resolve, refusedCall } from '../core/errors/failing.ts';
import { failure, intoLent, unavailable } from '../core/errors/failure.ts';
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import { guardedInRoot } from '../core/foreign.ts';
import type { Interceptor } from '../core/interceptor.ts';
import { fabricLog, logged } from '../core/log.ts';
import { encodeMetadata } from '../core/metadata-wire.ts';
import { checkCallSlots, checkedOptions, checkedTimeMs, checkNames } from '../core/options.ts';
import type { CallOptions } from '../core/types.ts';
import { processWarning, type Warn } from '../core/warnings.ts';
import type { FabricName } from '../fabrics.ts';
import { Reason } from '../native/native.ts';
import { callExtras, callTimeoutMs } from './call/call-options.ts';
import type { ClientMethod } from './call/client-method.ts';
import { repeated } from './call/repeat.ts';
import { type ChannelOptions, type CheckedChannelOptions, channelRules } from './channel-options.ts';
import type { Channel, ChannelState, ChannelStateListener } from './channel-type.ts';
import { type ChannelConfig, configOf } from './config/channel-config.ts';
import type { Deadlines } from './connections/awaited-pause.ts';
import type { ClientLink } from './connections/client-link.ts';
import { Connections, type ConnectionsOwner, type Route } from './connections/connections.ts';
import type { EndpointState } from './connections/endpoint.ts';
import { KeepAlive } from './connections/keep-alive.ts';
import { Pauses } from './connections/pauses.ts';
import { checkPolicy } from './connections/policies.ts';
import { takesCall } from './connections/ready-server.ts';
import { ReadyWaiters } from './connections/ready-waiters.ts';
import type { Resolver } from './connections/resolver.ts';
import { RetryBudget } from './connections/retry-budget.ts';
import type { ServerAddress } from './connections/servers.ts';
import { targetOf } from './connections/target.ts';
import { callCredentials, KeptCredentials } from './credentials.ts';
import { ChannelQueue, type QueueOwner } from './queue/channel-queue.ts';
import { WaitingCall } from './queue/waiting-calls.ts';
import type { CallExtras } from './session/call-extras.ts';
import { withoutWires } from './without-wires.ts';

// The promise executor stores its functions here, so that a call needs no closure. It is cleared at once,
// because it would otherwise keep the last response alive.
const nobody = (): void => undefined;
let newResolve: Resolve = nobody;
function capture(resolve: Resolve): void {
  newResolve = resolve;
}

/** Serves calls of the servers over the connections of a channel (reverse/). */
export interface ChannelServing {
  /** Receives the connections that can take calls. It may be called again for the same connection. */
  onReady(links: readonly ClientLink[]): void;
  /** Runs when the channel has been closed. */
  onClosed(): void;
}

export class ClientChannel
  extends EventEmitter<{ state: Parameters<ChannelStateListener> }>
  implements Channel, ConnectionsOwner, QueueOwner
{
  readonly address: string;
  readonly settings: CheckedChannelOptions;
  /** Returns false when calls in flight do not keep the process alive. */
  keepsAlive: () => boolean = () => true;
  /** The queue in which calls wait, and from which streams start. */
  readonly queue: ChannelQueue = new ChannelQueue(this);

  /** The service configuration; undefined when the channel can have none. */
  readonly config: ChannelConfig | undefined;
  readonly #onClosed: Route['onClosed'];
  readonly repeats = { budget: new RetryBudget(), pauses: new Pauses() } as const;
  readonly #plan: FabricPlan;
  readonly #credentials: KeptCredentials | undefined;
  readonly #interceptors: readonly Interceptor[];
  readonly #keepAlive: KeepAlive;
  readonly #connections: Connections;
  readonly #readyWaiters = new ReadyWaiters();
  #state: ChannelState = 'idle';
  #closed: Promise<void> | undefined;
  #whyClosed = 'the channel is closed';
  #serving: ChannelServing | undefined;

  constructor(route: Route, options: ChannelOptions | undefined) {
    super();
    this.settings = checkedOptions<CheckedChannelOptions>('createChannel', options, channelRules);
    checkCallSlots('createChannel', this.settings);
    checkPolicy('createChannel', this.settings);
    this.#onClosed = route.onClosed;
    this.address = route.address;
    const { session, call } = this.settings.credentials;
    this.#credentials = session === undefined ? undefined : new KeptCredentials(session);
    const { interceptors } = this.settings;
    this.#interceptors = call === undefined ? interceptors : [...interceptors, callCredentials(call)];
    this.#plan = fabricPlan(options, this.settings, route.fabrics);
    this.#keepAlive = new KeepAlive(() => this.#busy());
    this.config = configOf(route, this.settings, this.warn);
    this.#connections = new Connections(route, this);
    this.queue.connections = this.#connections;
    this.config?.apply(this.#connections, options, this.repeats);
  }

  /** Runs for mistakes in requests. */
  get warn(): Warn {
    const { log } = this.settings;
    return log === undefined ? processWarning : logged(log);
  }

  get state(): ChannelState {
    return this.#state;
  }

  get fabric(): FabricName | undefined {
    return this.connection?.fabric;
  }

  /** The connection of the next call, or undefined when the channel is not connected. */
  get connection(): Connection | undefined {
    return this.link?.connection;
  }

  /** The ClientLink of that connection. */
  get link(): ClientLink | undefined {
    return this.#connections.current;
  }

  get session(): SessionSummary | undefined {
    const { connection } = this;
    return connection === undefined
      ? undefined
      : summaryOf(connection, connection.server, connection.server.claims);
  }

  get addresses(): Channel['addresses'] {
    return this.#connections.summary;
  }

  get totals(): Channel['totals'] {
    return this.#connections.totals.now;
  }

  async ready(options: { timeoutMs?: number; signal?: AbortSignal } = {}): Promise<void> {
    checkNames('ready', options, ['timeoutMs', 'signal']);
    const { signal, timeoutMs } = options;
    if (timeoutMs !== undefined) checkedTimeMs('ready: timeoutMs', timeoutMs);
    if (this.#closed !== undefined) throw unavailable(`${this.address}: ${this.#whyClosed}`);
    if (this.#connections.current !== undefined) return;
    const ready = this.#readyWaiters.wait(this.address, timeoutMs, signal, () => this.#connections.lastError);
    if (timeoutMs === undefined) this.#connections.seek(true);
    else this.#connections.await(clockMs() + timeoutMs);
    try {
      await ready;
    } catch (error) {
      // Each waiter gets a separate error, so that the error has the waiter's own stack.
      const { code, rawMessage, cause, trailer } = RpcError.from(error);
      throw new RpcError(code, rawMessage, { processed: 'no', cause: cause ?? error, trailer });
    }
  }

  close(): Promise<void> {
    return this.closeFor('the channel was closed');
  }

  /** Closes the channel. `reason` is the error text for calls in flight and waiting calls. */
  closeFor(reason: string, whyClosed = this.#whyClosed): Promise<void> {
    if (this.#closed !== undefined) return this.#closed;
    this.#whyClosed = whyClosed;
    this.#closed = this.#end(reason);
    // Callers may make new calls at once, and these calls must already find the channel closed.
    this.repeats.pauses.close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /**
   * The context for leases of the channel: that of its connection, or the context that its first fabric will
   * use.
   */
  get context(): FabricContext {
    const current = this.#connections.current?.connection.context;
    if (current !== undefined) return current;
    const side = this.side();
    const fabric = side.fabrics[0]!;
    if (isAlone(side, fabric))
      throw unavailable(
        `${this.address}: a channel with ${side.isolated ? "isolation 'session'" : `fabric '${fabric}'`} has memory only while it is connected; await ready() first`,
      );
    return peekContext(choiceOf(side, fabric));
  }

  get interceptors(): readonly Interceptor[] {
    return this.#interceptors;
  }

  /** Time limit in ms of calls that set no limit, or -1 for no limit. */
  get defaultTimeoutMs(): number {
    return this.settings.timeoutMs;
  }

  /** Starts a unary call. Every unary call begins here. */
  unary(method: ClientMethod, request: unknown, options: CallOptions | undefined): Promise<unknown> {
    // JavaScript callers may pass any value as `options`; `attempt` refuses invalid values.
    if (options?.retry !== undefined || options?.hedging !== undefined)
      return repeated(this, method, request, options);
    return this.attempt(method, request, options);
  }

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
    this.wake();
    const promise = new Promise<unknown>(capture);
    const resolve = newResolve;
    newResolve = nobody;
    if (extras?.into?.lend(promise) === false) return refusedCall(intoLent(method.path));
    const { waiting } = this.queue;
    // Calls that already wait come first.
    const link = waiting.size === 0 ? this.#connections.for(takesCall, extras?.metadata) : undefined;
    if (link?.session.start(method, request, deadlineMs, extras, resolve) !== true)
      this.queue.enter(new WaitingCall(waiting, method, request, deadlineMs, extras, resolve));
    return promise;
  }

  /** A caller waits for a connection without a time limit. */
  get wanted(): boolean {
    return this.#serving !== undefined || this.queue.size + this.#readyWaiters.size > 0;
  }

  /**
   * Lets `serving` serve calls of the servers. From then on, the channel connects, stays connected, and keeps
   * the process alive. Returns false when another object already serves them.
   */
  serve(serving: ChannelServing): boolean {
    if (this.#serving !== undefined) return false;
    this.#serving = serving;
    this.wake();
    serving.onReady(this.#connections.ready);
    this.#connections.seek(false);
    return true;
  }

  serveNoMore(serving: ChannelServing): void {
    if (this.#serving === serving) this.#serving = undefined;
  }

  get deadlines(): Deadlines {
    return [...this.queue.deadlines(), ...this.#readyWaiters.deadlines()];
  }

  /** Returns what this side offers in a handshake. */
  side(): LocalSide {
    const { inflightMax, streamsMax, messageMaxBytes, identity, security, log } = this.settings;
    const own = { role: 'client', inflightMax, streamsMax, messageMaxBytes, identity, ...security } as const;
    const side: LocalSide = { ...own, log: fabricLog(log), ...offers(this.#plan) };
    const { call, unsealed = false } = this.settings.credentials;
    const credentials = this.#credentials;
    return {
      ...(call === undefined || unsealed || security.require === 'sealed' ? side : withoutWires(side)),
      ...(credentials !== undefined && {
        unsealed,
        credentials: async () => encodeMetadata(await credentials.metadata()),
      }),
    };
  }

  /** Passes a change of the connections on to waiting calls and to callers of ready(). */
  onChange(state: EndpointState): void {
    if (this.#closed !== undefined) return;
    this.#setState(state === 'ejected' ? 'ready' : state);
    if (this.#serving !== undefined) {
      this.#serving.onReady(this.#connections.ready);
      this.#connections.seek(false);
    }
    if (this.#connections.current !== undefined) {
      this.#readyWaiters.resolveAll();
      this.queue.onConnected();
    } else if (this.failing) {
      const { lastError } = this.#connections;
      this.#readyWaiters.rejectUnlessWaitForReady(lastError ?? unavailable(`${this.address}: not connected`));
      this.queue.onUnconnected();
    } else if (state === 'idle' && this.wanted) this.#connections.seek(false);
  }

  get closed(): boolean {
    return this.#closed !== undefined;
  }

  get whyClosed(): string {
    return this.#whyClosed;
  }

  get failing(): boolean {
    return this.#state === 'failing' && !this.#connections.comesAgain;
  }

  /** Runs when a call or a stream begins. */
  wake(): void {
    if (!this.#keepAlive.running) this.#wake();
  }

  /** Runs for the first call after an idle time. */
  #wake(): void {
    const silentMs = this.#keepAlive.start();
    if (silentMs >= this.settings.verifyAfterMs) this.#connections.verify();
  }

  #setState(state: ChannelState): void {
    if (state === this.#state) return;
    this.#state = state;
    if (this.listenerCount('state') === 0) return;
    const error = state === 'failing' ? this.#connections.lastError : undefined;
    // Listeners are notified later, so that they cannot call the channel in the middle of a change.
    queueMicrotask(() => this.#tellState(state, error));
  }

  /** An error of one listener becomes a warning, and the other listeners are still called. */
  #tellState(state: ChannelState, error: RpcError | undefined): void {
    for (const listener of this.rawListeners('state'))
      guardedInRoot("a listener of channel.on('state')", () => listener.call(this, state, error));
  }

  unconnected(path: string): RpcError {
    const cause = this.#connections.lastError;
    const why = cause?.rawMessage ?? 'not connected';
    return new RpcError(cause?.code ?? Status.UNAVAILABLE, `${path}: ${why}`, { processed: 'no', cause });
  }

  #busy(): boolean {
    if (this.#serving !== undefined) return true;
    return this.keepsAlive() && (this.queue.size > 0 || this.#connections.busy);
  }

  async #end(reason: string): Promise<void> {
    this.#setState('closed');
    this.#serving?.onClosed();
    const ended = this.#connections.close(reason);
    this.queue.failAll(reason);
    this.#readyWaiters.rejectAll(() => unavailable(`${this.address}: ${reason}`));
    await ended;
    this.config?.close();
    this.#keepAlive.stop();
    await this.#onClosed?.();
  }
}

/**
 * Returns the class behind a channel of the application. Throws a TypeError for any other value, including
 * channels of another copy of this package.
 */
export function clientChannel(what: string, channel: Channel): ClientChannel {
  if (channel instanceof ClientChannel) return channel;
  throw new TypeError(`${what}: give a channel that createChannel() of the same rdma-rpc has returned`);
}

/**
 * Creates a channel, which connects later. `address` is `host:port`, `[ipv6]:port` or `unix:/path`, or
 * several of these, separated by commas or as a list (which may have weights). `dns:///host:port` stands for
 * all addresses of a name, and `srv:///_service._tcp.name` for the servers of SRV records. A {@link Resolver}
 * returns the addresses itself. Throws for an invalid address or option.
 */
export function createChannel(
  address: string | readonly (string | ServerAddress)[] | Resolver,
  options?: ChannelOptions,
): Channel {
  const { name, host, ...target } = targetOf(address);
  const tls = options?.tls === undefined ? undefined : new TlsDial(options.tls, host, options.log);
  const dial: Route['dial'] = (signal, to) => patient(socketDial(parseAddress(to), tls))(signal);
  return new ClientChannel({ address: name, ...target, dial }, options);
}
