/**
 * A server: its handlers, the addresses on which it listens, and its sessions. `createServer` creates it. The
 * in-process channel passes it connections without a socket.
 */

import type { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { releaseContext } from '../boundary/contexts.ts';
import type { ServiceDefinition } from '../codec/types.ts';
import { type FabricPlan, fabricPlan, offers } from '../control/fabric-options.ts';
import { controlText, type Hello } from '../control/frames.ts';
import { Handshakes } from '../control/handshake/handshakes.ts';
import type { MemoryTerms } from '../control/handshake/memory-terms.ts';
import { handshakeFailed, refusalOf } from '../control/handshake/refusal.ts';
import type { SecondSession } from '../control/handshake/second-session.ts';
import {
  type Attach,
  isRefusal,
  NotConnected,
  ServerHandshake,
} from '../control/handshake/server-handshake.ts';
import type { LocalSide, Prepared } from '../control/handshake/session-setup.ts';
import { Link } from '../control/link.ts';
import { levelNumber, levelOf } from '../control/security-level.ts';
import { type SessionSummary, summaryOf } from '../control/session-summary.ts';
import { type Address, ownAddress, parseAddress, peerAddress } from '../control/socket/address.ts';
import { Listener } from '../control/socket/listener.ts';
import { handoffOf, TlsAcceptor } from '../control/tls/tls-server.ts';
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import { checkedInterceptors, type Interceptor } from '../core/interceptor.ts';
import { fabricLog, LimitedLog, type Log, logged } from '../core/log.ts';
import { checkCallSlots, checkedOptions, checkedTimeMs, checkNames } from '../core/options.ts';
import type { PeerInfo } from '../core/peer.ts';
import { RefusalWarnings } from '../core/refusal-warnings.ts';
import { inRoot } from '../core/scopes.ts';
import type { Handlers } from '../core/types.ts';
import { HandlerErrors, processWarning, type Warn } from '../core/warnings.ts';
import type { FabricName } from '../fabrics.ts';
import * as limits from '../limits.ts';
import { loadNative } from '../native/native.ts';
import { reasonOf } from './allowed.ts';
import { Authentication } from './authentication.ts';
import { Authorization } from './authorize.ts';
import { ConnectionAttempt } from './connection-attempt.ts';
import { denialsTo } from './denials.ts';
import { Departure } from './departure.ts';
import { HandlerTable } from './handlers.ts';
import { KeptContexts } from './kept-contexts.ts';
import { Load } from './load.ts';
import { whyNoClient } from './no-client.ts';
import { PeerCounts } from './peer-counts.ts';
import { type ConnectionFeatures, ServerConnection } from './server-connection.ts';
import { type ResolvedServerOptions, type ServerOptions, serverRules } from './server-options.ts';
import { ServerSession, type ServerSessionListener } from './server-session.ts';
import type { Server, ServiceScope } from './server-type.ts';
import { ScopedServices } from './service-scope.ts';
import { ServerStreams } from './stream/server-streams.ts';
import { TimeLimits } from './time-limits.ts';

export class RpcServer implements Server, ServerSessionListener {
  readonly #options: ResolvedServerOptions;
  readonly #plan: FabricPlan;
  readonly #handlers: HandlerTable;
  readonly #errors: HandlerErrors;
  readonly #interceptors: Interceptor[] = [];
  readonly #load: Load;
  readonly #handshakes: Handshakes;
  readonly #authentication: Authentication;
  readonly #tls: TlsAcceptor | undefined;
  readonly #log: LimitedLog | undefined;
  /** Undefined when the application learns about refused clients by `log` or `onSession`. */
  readonly #refusals: RefusalWarnings | undefined;
  readonly #warn: Warn;
  readonly #whyNoClient: (address: Address) => string;
  readonly #listeners: Listener[] = [];
  readonly #sessions = new Map<ServerSession, ServerConnection>();
  /**
   * The newest connection of each link. Earlier connections of the link have failed and may still be closing.
   */
  readonly #newest = new WeakMap<Link, ServerConnection>();
  /**
   * Sessions of failed handshakes. These connections are closing and do not count towards the limit of
   * sessions.
   */
  readonly #vain = new Set<ServerSession>();
  readonly #contexts: KeptContexts;
  readonly #services: ServiceDefinition[] = [];
  readonly #authorization: Authorization | undefined;
  readonly features: ConnectionFeatures = {};
  readonly #departure = new Departure();
  #onLastSession: (() => void) | undefined;

  constructor(options: ServerOptions | undefined, fabrics?: readonly FabricName[]) {
    this.#options = checkedOptions<ResolvedServerOptions>('createServer', options, serverRules);
    checkCallSlots('createServer', this.#options);
    this.#plan = fabricPlan(options, this.#options, fabrics);
    const { handlersMax, sessionsPerPeerMax, log, defaultTimeoutMs, timeoutMaxMs } = this.#options;
    const warn = log === undefined ? processWarning : logged(log);
    this.#errors = new HandlerErrors(this.#options.onHandlerError, warn);
    this.#warn = warn;
    this.#log = log === undefined ? undefined : new LimitedLog(log);
    const heard = log !== undefined || this.#options.onSession !== undefined;
    this.#refusals = heard ? undefined : new RefusalWarnings();
    const { authorize } = this.#options;
    const denied = denialsTo(this.#log, this.#options);
    const authorization = authorize === undefined ? undefined : new Authorization(authorize, denied);
    this.#authorization = authorization;
    this.#handlers = new HandlerTable(new TimeLimits(defaultTimeoutMs, timeoutMaxMs), warn, authorization);
    this.#load = new Load(handlersMax);
    this.#tls = options?.tls === undefined ? undefined : new TlsAcceptor('createServer', options.tls, warn);
    this.#whyNoClient = (address) =>
      whyNoClient(address, options, this.#options, { tls: this.#tls, ciphers: loadNative().ciphers });
    this.#handshakes = new Handshakes(this.#options, (link) => this.#connectionOf(link)?.used ?? false);
    this.#contexts = new KeptContexts(() => this.#side(undefined, undefined), this.#plan.auto);
    this.#authentication = new Authentication(
      options,
      this.#options,
      new PeerCounts(sessionsPerPeerMax),
      this.#handshakes,
    );
  }

  add<D extends ServiceDefinition>(definition: D, handlers: Partial<Handlers<D>>): this {
    this.#addWith([], definition, handlers);
    return this;
  }

  use(...interceptors: Interceptor[]): this {
    const given = checkedInterceptors('use', interceptors);
    if (this.#services.length > 0) {
      throw new Error('use: a service has been added already and would be left out; call use() before add()');
    }
    this.#interceptors.push(...given);
    return this;
  }

  scope(...interceptors: Interceptor[]): ServiceScope {
    const given = checkedInterceptors('scope', interceptors);
    return new ScopedServices(given, (...service) => this.#addWith(...service));
  }

  async listen(address: string): Promise<string> {
    if (this.stopping) throw new Error('listen: this server has been shut down');
    this.open();
    // Only TLS requires waiting here. Without TLS, the server listens before this function returns.
    if (this.#tls !== undefined) await this.#tls.ready();
    if (this.stopping) throw new Error(`listen ${address}: the server was shut down`);
    const noClient = this.#whyNoClient(parseAddress(address));
    if (noClient !== '')
      this.#warn(`listen ${address}: no client can be accepted on this address: ${noClient}`);
    const listener = new Listener((socket) => {
      const remote = socket.remoteAddress;
      this.accept(socket, remote === undefined ? address : `${remote}:${socket.remotePort}`);
    }, this.#options.socket);
    this.#listeners.push(listener);
    return listener.listen(address);
  }

  shutdown(options: { graceMs?: number } = {}): Promise<void> {
    checkNames('shutdown', options, ['graceMs']);
    const graceMs = checkedTimeMs('shutdown: graceMs', options.graceMs ?? limits.graceMs.default);
    const endMs = Math.min(graceMs, limits.graceMs.max);
    if (!this.stopping) this.#departure.begin(endMs, () => this.#end(endMs));
    return this.#departure.ended;
  }

  onShutdown(listener: () => unknown): void {
    this.#departure.add(listener);
  }

  get stopping(): boolean {
    return this.#departure.begun;
  }

  get services(): readonly ServiceDefinition[] {
    return this.#services;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.shutdown();
  }

  /** True when the server's own listeners use TLS. */
  get hasTls(): boolean {
    return this.#tls !== undefined;
  }

  get sessionCount(): number {
    return this.#sessions.size;
  }

  get sessions(): readonly SessionSummary[] {
    return [...this.#sessions.values()]
      .filter(({ ready }) => ready)
      .map(({ prepared, session }) => summaryOf(prepared, session.peer, String(session.peer)));
  }

  /** Accepts a sideband connection. `address` is the address of the client, for logs. */
  accept(duplex: Duplex, address: string): void {
    const from = peerAddress(duplex);
    const link: Link = new Link(
      duplex,
      handoffOf(duplex, this.#tls, () => this.#handshakes.enterTls(link)),
    );
    const attempt = new ConnectionAttempt(address, this.#options.onSession);
    if (this.#departure.over) {
      const error = new RpcError(Status.UNAVAILABLE, 'the server is shutting down');
      attempt.refused(error);
      link.close(error.rawMessage, refusalOf(error));
      return;
    }
    const limited = this.#log;
    const log: Log | undefined = limited && ((line) => limited.write(line, from));
    this.#handshakes.begin(link, from);
    const side = { ...this.#side(ownAddress(duplex), log), arenaBytesMax: () => attempt.arenaBytesMax };
    this.#shakeHands(link, attempt, side)
      .then(
        () => attempt.accepted(),
        (error: unknown) => {
          // A request that has arrived counts as the `ready` frame, which was still on its way.
          if (attempt.connection?.used === true) attempt.accepted();
          else if (!link.handedOver) attempt.refused(error);
          throw error;
        },
      )
      .catch((error: unknown) => {
        if (link.handedOver) return;
        const known = RpcError.from(error, Status.UNAVAILABLE);
        const message = controlText(known.rawMessage);
        const line = handshakeFailed(attempt.name, reasonOf(known));
        log?.(line);
        if (isRefusal(error)) this.#refusals?.add(line);
        const told = error instanceof NotConnected ? error.told : message;
        // After the first request, no refusal is sent, because a refusal would mean that no request has been
        // run.
        const used = attempt.connection?.used === true;
        link.close(told, used ? { type: 'bye', reason: told } : refusalOf(known, told));
      })
      .finally(() => this.#handshakes.end(link));
  }

  /**
   * Throws or rejects when the peer may not call the method (option `authorize`). Returns undefined when the
   * call is allowed at once.
   */
  authorize(peer: PeerInfo, method: string): Promise<void> | undefined {
    const authorization = this.#authorization;
    return authorization && inRoot(() => authorization.admit(peer, method));
  }

  /**
   * Opens the contexts, so that a missing addon or fabric is an error of listen(), not of the first client.
   */
  open(): void {
    this.#authorization?.warnOfServices(this.#services, this.#warn);
    this.#contexts.open();
  }

  onHandlerError(error: unknown, method: string): void {
    this.#errors.report(error, method);
  }

  onSessionDown(session: ServerSession, reason: string): void {
    const connection = this.#sessions.get(session);
    if (connection === undefined) return;
    this.#sessions.delete(session);
    this.#vain.delete(session);
    connection.ended(reason);
    releaseContext(connection.prepared.context);
    if (this.#sessions.size === 0) this.#onLastSession?.();
  }

  /** Adds a service. `inner` contains interceptors that are inside the interceptors of the server. */
  #addWith(inner: readonly Interceptor[], definition: ServiceDefinition, handlers: object): void {
    this.#handlers.add(definition, handlers, [...this.#interceptors, ...inner]);
    this.#services.push(definition);
  }

  /** Throws when the server has too many sessions and no silent client can be evicted. */
  #checkRoom(): void {
    const { sessionsMax } = this.#options;
    if (this.#sessions.size - this.#vain.size < sessionsMax) return;
    const isTrying = (link: Link): boolean => this.#connectionOf(link) !== undefined;
    if (this.#handshakes.evictSilent(isTrying) !== undefined) return;
    const text = `there are ${sessionsMax} sessions already (option sessionsMax of the server)`;
    throw new RpcError(Status.RESOURCE_EXHAUSTED, text);
  }

  #attach(
    link: Link,
    prepared: Prepared,
    attempt: ConnectionAttempt,
    second: SecondSession | undefined,
    memory: MemoryTerms | undefined,
  ): void {
    // The limit is checked again, because other sessions may have been created during this handshake.
    this.#checkRoom();
    const { context, target } = prepared;
    const session = new ServerSession(context, target, attempt, this.#handlers, this.#load, this);
    session.leasesEnd = this.#options.requestMemory === 'call';
    if (prepared.streamsMax > 0)
      session.makeParts = () => new ServerStreams(session.shared, prepared.streamsMax);
    const connection = new ServerConnection(session, link, prepared, second, memory, this.features);
    attempt.connection = connection;
    this.#sessions.set(session, connection);
    this.#newest.set(link, connection);
    const level = levelNumber(levelOf(attempt.peer.security, prepared.protection));
    context.native.nameSession(target.session, String(attempt.peer), level);
    this.#contexts.reopen();
    link.onEnd = (reason) => {
      if (!this.#sessions.has(session)) return;
      // The client has been told that none of its calls was run. All calls that still arrive are rejected, so
      // that this stays true.
      if (!connection.ready && !connection.used) {
        session.rejectAfter(reason, 0);
        this.#vain.add(session);
      }
      context.sessions.close(target.session, reason);
    };
  }

  #connectionOf(link: Link): ServerConnection | undefined {
    const connection = this.#newest.get(link);
    return connection !== undefined && this.#sessions.has(connection.session) ? connection : undefined;
  }

  #side(address: string | undefined, log: Log | undefined): LocalSide {
    const { inflightMax, streamsMax, messageMaxBytes, identity, security } = this.#options;
    const timeLimits = this.#handlers.limits.native;
    const own = { inflightMax, streamsMax, messageMaxBytes, identity, timeLimits, ...security };
    const side = { ...own, log: fabricLog(log), ...offers(this.#plan) };
    return address === undefined ? { role: 'server', ...side } : { role: 'server', ...side, address };
  }

  async #shakeHands(link: Link, attempt: ConnectionAttempt, side: LocalSide): Promise<void> {
    const admit = (hello: Hello): Promise<void> | undefined => {
      this.#checkRoom();
      const admitted = (): Promise<void> | undefined => this.#authentication.admit(attempt, link, hello);
      const turn = this.#handshakes.enter(link);
      return turn === undefined ? admitted() : turn.then(admitted);
    };
    const attach: Attach = (prepared, _, ...more) => this.#attach(link, prepared, attempt, ...more);
    const isOnly = (): boolean => this.#handshakes.size === 1;
    await new ServerHandshake(link, side, { admit, attach, isOnly }).run(attempt.address);
    this.#handshakes.succeed(link);
    const connection = this.#connectionOf(link);
    connection?.begin(this.#options);
    link.deliver((frame) => {
      if (connection?.take(frame)) return;
      const reason = frame.type === 'bye' ? frame.reason : `the client sent an unexpected ${frame.type}`;
      // A peer that has sent `bye` no longer reads.
      link.close(reason, frame.type === 'bye' ? undefined : { type: 'bye', reason });
    });
  }

  async #end(graceMs: number): Promise<void> {
    for (const listener of this.#listeners) listener.close();
    const connections = [...this.#sessions.values()];
    const attached = new Set(connections.map(({ link }) => link));
    this.#handshakes.closeAll('the server is shutting down', (link) => !attached.has(link));
    for (const connection of connections) connection.leave('the server is shutting down');
    await this.#sessionsGone(graceMs);
    for (const connection of [...this.#sessions.values()]) connection.close('the server was shut down');
    await this.#sessionsGone(limits.closeTimeoutMs);
    for (const { session } of [...this.#sessions.values()])
      this.onSessionDown(session, 'the server was shut down');
    this.#contexts.close();
    this.#errors.sum();
    this.#refusals?.sum();
    // The contexts without users are closed one event-loop iteration later.
    await setImmediate();
  }

  #sessionsGone(timeoutMs: number): Promise<void> {
    if (this.#sessions.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.#onLastSession = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Returns the class behind a server. Throws a TypeError for objects that this package has not created. */
export function rpcServer(what: string, server: Server): RpcServer {
  if (server instanceof RpcServer) return server;
  throw new TypeError(`${what}: give a server that createServer() of the same rdma-rpc has returned`);
}

/**
 * Creates a server. The application calls `add(...)` and then `listen(...)` on it. Throws for unknown options
 * and invalid values.
 */
export function createServer(options?: ServerOptions): Server {
  return new RpcServer(options);
}
