/**
 * A server: handlers of services, the addresses it listens on, and its sessions. `createServer` makes one; the in-process transport gives it
 * connections without a socket.
 */
import type { Duplex } from 'node:stream';
import { acquireContext, type FabricName, releaseContext } from '../call/contexts.ts';
import type { FabricContext } from '../call/fabric-context.ts';
import { Handlers } from '../call/handlers.ts';
import type { OnHandlerError } from '../call/responder.ts';
import { RpcError } from '../call/rpc-error.ts';
import { ServerSession, type ServerSessionListener } from '../call/server-session.ts';
import { Status } from '../call/status.ts';
import type { ServiceDefinition } from '../codec/types.ts';
import { acceptOver } from '../control/accept.ts';
import { ownAddress } from '../control/address.ts';
import { controlText } from '../control/frames.ts';
import { Handshakes } from '../control/handshakes.ts';
import { Link } from '../control/link.ts';
import { Listener } from '../control/listener.ts';
import { choiceOf, type LocalSide, type Prepared } from '../control/session-setup.ts';
import * as limits from '../limits.ts';
import {
  type CheckedFabricOptions,
  type FabricOptions,
  type FabricPlan,
  fabricPlan,
  fabricRules,
  offers,
} from './fabric-options.ts';
import { fabricLog, type Log } from './log.ts';
import { checkCallSlots, checkedOptions, checkedTimeMs, checkNames, type OptionRules } from './options.ts';
import { type SessionSummary, summaryOf } from './session-summary.ts';
import type { HandlersOf } from './types.ts';

export interface ServerOptions extends FabricOptions {
  /** Calls in flight per session, at most; the client may ask for fewer. Default 256. */
  inflightMax?: number;
  /** Streams open at once per session, at most; the client may ask for fewer. Default 64, 0 to allow none. */
  streamsMax?: number;
  /** Largest request accepted, bytes. Default 64 MiB, at most 4 GiB - 1. */
  maxMessageBytes?: number;
  /** Sessions at once. Default 1024. */
  sessionsMax?: number;
  /** Connections whose handshake is not over. Default 128; one more pushes the oldest out. */
  handshakesMax?: number;
  /** Default 5000. */
  handshakeTimeoutMs?: number;
  /** Told about errors of handlers that are no RpcError. Callers learn only INTERNAL and a fixed text. */
  onHandlerError?: OnHandlerError;
  /** What clients are told about this process. Default: its process id. */
  identity?: string;
  /** Gets one line per connection: the fabric chosen, and why no other, or why the handshake failed. Default: a process warning, only when one was skipped. */
  log?: Log;
}

export const serverRules: OptionRules = {
  inflightMax: { kind: 'integer', range: limits.inflight },
  streamsMax: { kind: 'integer', range: limits.streams },
  maxMessageBytes: { kind: 'integer', range: limits.messageBytes },
  sessionsMax: { kind: 'integer', range: limits.sessions },
  handshakesMax: { kind: 'integer', range: limits.handshakes },
  handshakeTimeoutMs: { kind: 'integer', range: limits.handshakeTimeoutMs },
  onHandlerError: { kind: 'function' },
  identity: { kind: 'text', default: `pid ${process.pid}`, maxBytes: limits.controlTextBytes },
  log: { kind: 'function' },
  ...fabricRules,
};

type Resolved = Required<Omit<ServerOptions, 'onHandlerError' | 'log' | keyof FabricOptions>> &
  Pick<ServerOptions, 'onHandlerError' | 'log'> &
  CheckedFabricOptions;

interface Attached {
  readonly session: ServerSession;
  readonly link: Link;
  readonly prepared: Prepared;
  /** The handshake is over: from now on session and link end together. Until then the client may try another fabric. */
  ready: boolean;
}

export class Server implements ServerSessionListener {
  readonly #options: Resolved;
  readonly #plan: FabricPlan;
  readonly #handlers = new Handlers();
  readonly #handshakes: Handshakes;
  readonly #listeners: Listener[] = [];
  readonly #sessions = new Map<ServerSession, Attached>();
  readonly #contexts: FabricContext[] = [];
  #shutdown: Promise<void> | undefined;
  #onLastSession: (() => void) | undefined;

  /** @internal createServer() is the way to make one */
  constructor(options: ServerOptions | undefined, fabrics?: readonly FabricName[]) {
    this.#options = checkedOptions<Resolved>('createServer', options, serverRules);
    checkCallSlots('createServer', this.#options);
    this.#plan = fabricPlan(options, this.#options, fabrics);
    this.#handshakes = new Handshakes(this.#options, (link) => this.#attachedTo(link)?.session.used ?? false);
  }

  /**
   * Serves the methods of `definition` that `handlers` (an object or class instance) has; the others answer UNIMPLEMENTED. Throws if
   * the service was added before, or one of its method ids collides.
   */
  add<D extends ServiceDefinition>(definition: D, handlers: Partial<HandlersOf<D>>): this {
    this.#handlers.add(definition, handlers);
    return this;
  }

  /**
   * Listens on `host:port` (port 0: any free one), `[ipv6]:port` or `unix:/path`; may be called for several. Resolves with the bound address, as
   * a client needs it. Rejects when the address is in use or no fabric can be opened.
   */
  async listen(address: string): Promise<string> {
    if (this.#shutdown !== undefined) throw new Error('listen: this server has been shut down');
    this.#openFabrics();
    const listener = new Listener((socket) => {
      const remote = socket.remoteAddress;
      this.accept(socket, remote === undefined ? address : `${remote}:${socket.remotePort}`);
    });
    this.#listeners.push(listener);
    return listener.listen(address);
  }

  /**
   * Stops accepting, tells clients to send no more calls, lets those under way finish for `graceMs` (default 5000), then ends what is left: their handlers'
   * signals fire, their callers get UNAVAILABLE. Always resolves, soon after the grace at the latest.
   */
  shutdown(options: { graceMs?: number } = {}): Promise<void> {
    checkNames('shutdown', options, ['graceMs']);
    const graceMs = checkedTimeMs('shutdown: graceMs', options.graceMs ?? limits.graceMs.default);
    this.#shutdown ??= this.#end(Math.min(graceMs, limits.graceMs.max));
    return this.#shutdown;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.shutdown();
  }

  /** Number of sessions that are up. */
  get sessionCount(): number {
    return this.#sessions.size;
  }

  /** The sessions that are up, oldest first. */
  get sessions(): readonly SessionSummary[] {
    return [...this.#sessions.values()]
      .filter(({ ready }) => ready)
      .map(({ prepared, session }) => summaryOf(prepared, session.peer));
  }

  /** @internal Takes a sideband connection; `peer` is for people. */
  accept(duplex: Duplex, peer: string): void {
    const link = new Link(duplex);
    if (this.#shutdown !== undefined) {
      this.#turnAway(link, Status.UNAVAILABLE, 'the server is shutting down');
      return;
    }
    const full = this.#full();
    if (full !== undefined) {
      this.#turnAway(link, full.code, full.rawMessage);
      return;
    }
    this.#handshakes.begin(link);
    this.#shakeHands(link, peer, ownAddress(duplex))
      .catch((error: unknown) => {
        const { code, rawMessage } = RpcError.from(error, Status.UNAVAILABLE);
        const message = controlText(rawMessage);
        this.#options.log?.(`handshake with ${peer} failed: ${message}`);
        this.#turnAway(link, code, message);
      })
      .finally(() => this.#handshakes.end(link));
  }

  /** @internal */
  onHandlerError(error: unknown, method: string): void {
    try {
      this.#options.onHandlerError?.(error, method);
    } catch (fault) {
      process.emitWarning(fault instanceof Error ? fault : String(fault), 'RdmaRpcWarning');
    }
  }

  /** @internal */
  onSessionDown(session: ServerSession, reason: string): void {
    const attached = this.#sessions.get(session);
    if (attached === undefined) return;
    this.#sessions.delete(session);
    if (attached.ready || session.used)
      attached.link.close(reason, { type: 'bye', reason: controlText(reason) });
    releaseContext(attached.prepared.context);
    if (this.#sessions.size === 0) this.#onLastSession?.();
  }

  #full(): RpcError | undefined {
    const { sessionsMax } = this.#options;
    if (this.#sessions.size < sessionsMax) return undefined;
    const text = `there are ${sessionsMax} sessions already (option sessionsMax of the server)`;
    return new RpcError(Status.RESOURCE_EXHAUSTED, text);
  }

  #attach(link: Link, prepared: Prepared, peer: string): void {
    // Others may have come in while this one was shaking hands.
    const full = this.#full();
    if (full !== undefined) throw full;
    const session = new ServerSession(prepared.context, prepared.target, peer, this.#handlers, this);
    this.#sessions.set(session, { session, link, prepared, ready: false });
    link.onEnd = (reason) => {
      if (this.#sessions.has(session)) prepared.context.closeSession(prepared.target.session, reason);
    };
  }

  /** The newest: one that its client could not reach may still be on its way out. */
  #attachedTo(link: Link): Attached | undefined {
    return [...this.#sessions.values()].findLast((attached) => attached.link === link);
  }

  #side(address: string | undefined): LocalSide {
    const { inflightMax, streamsMax, maxMessageBytes, identity, log } = this.#options;
    const own = { inflightMax, streamsMax, maxMessageBytes, identity };
    const side = { ...own, log: fabricLog(log), ...offers(this.#plan) };
    return address === undefined ? { role: 'server', ...side } : { role: 'server', ...side, address };
  }

  async #shakeHands(link: Link, peer: string, address: string | undefined): Promise<void> {
    await acceptOver(link, this.#side(address), peer, (prepared, hello) =>
      this.#attach(link, prepared, `${peer} (${hello.identity})`),
    );
    const attached = this.#attachedTo(link);
    if (attached !== undefined) attached.ready = true;
    link.deliver((frame) => {
      const reason = frame.type === 'bye' ? frame.reason : `the client sent an unexpected ${frame.type}`;
      link.close(reason, { type: 'bye', reason });
    });
  }

  #turnAway(link: Link, code: number, message: string): void {
    link.close(message, { type: 'refusal', code, message });
  }

  /** So that a missing addon or fabric is an error of listen(), not of the first client. */
  #openFabrics(): void {
    if (this.#contexts.length > 0) return;
    const side = this.#side(undefined);
    const errors: unknown[] = [];
    for (const fabric of side.fabrics) {
      // Nobody may ever need the device, and an open one holds locked memory.
      if (this.#plan.auto && fabric === 'verbs') continue;
      try {
        this.#contexts.push(acquireContext(choiceOf(side, fabric)));
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0 && this.#contexts.length === 0) throw errors[0];
    // Each session will open one of its own.
    if (side.isolated) for (const context of this.#contexts.splice(0)) releaseContext(context);
  }

  async #end(graceMs: number): Promise<void> {
    for (const listener of this.#listeners) listener.close();
    const attached = new Set([...this.#sessions.values()].map(({ link }) => link));
    this.#handshakes.closeAll('the server is shutting down', (link) => !attached.has(link));
    // Requests that are on their way are still served; a client that has seen this sends no more, and leaves after its last answer.
    for (const link of attached) link.send({ type: 'goaway', reason: 'the server is shutting down' });
    await this.#sessionsGone(graceMs);
    for (const { link } of [...this.#sessions.values()]) {
      link.close('the server was shut down', { type: 'bye', reason: 'the server was shut down' });
    }
    await this.#sessionsGone(limits.closeTimeoutMs);
    for (const { prepared } of this.#sessions.values()) releaseContext(prepared.context);
    this.#sessions.clear();
    for (const context of this.#contexts.splice(0)) releaseContext(context);
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

/** A server without handlers that listens nowhere yet: `createServer().add(...)`, then `listen(...)`. Throws for unknown options or values out of range. */
export function createServer(options?: ServerOptions): Server {
  return new Server(options);
}
