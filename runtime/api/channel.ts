/**
 * A channel: the way to one server. It connects when the first call needs it, keeps one session, and connects anew on the next
 * call after a loss. The path of each call begins here.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { CallExtras } from '../call/call-extras.ts';
import type { ClientMethod } from '../call/client-method.ts';
import { type FabricName, peekContext } from '../call/contexts.ts';
import { closeTurn, turnNow } from '../call/deadlines.ts';
import type { FabricContext } from '../call/fabric-context.ts';
import { failure, queueFull, unavailable } from '../call/failure.ts';
import { RpcError } from '../call/rpc-error.ts';
import { Status } from '../call/status.ts';
import { type Reject, type Resolve, WaitingCall, WaitingCalls } from '../call/waiting-calls.ts';
import { parseAddress } from '../control/address.ts';
import { openConnection } from '../control/connect.ts';
import { type Dial, socketDial } from '../control/dial.ts';
import { choiceOf, type LocalSide } from '../control/session-setup.ts';
import * as limits from '../limits.ts';
import { Reason } from '../native.ts';
import { ChannelStreams, type StreamChannel } from '../stream/channel-streams.ts';
import type { ClientStreams } from '../stream/client-streams.ts';
import { callExtras, callTimeoutMs } from './call-options.ts';
import { ClientLink, type ClientLinkOwner } from './client-link.ts';
import {
  type CheckedFabricOptions,
  type FabricOptions,
  type FabricPlan,
  fabricPlan,
  fabricRules,
  offers,
} from './fabric-options.ts';
import { KeepAlive } from './keep-alive.ts';
import { fabricLog, type Log } from './log.ts';
import { checkCallSlots, checkedOptions, checkedTimeMs, checkNames, type OptionRules } from './options.ts';
import { type SessionSummary, summaryOf } from './session-summary.ts';
import type { CallOptions } from './types.ts';

export interface ChannelOptions extends FabricOptions {
  /** Calls in flight at once; the server may allow fewer. Default 256. */
  inflightMax?: number;
  /** Streams open at once; the server may allow fewer. Default 64; more wait. */
  streamsMax?: number;
  /** Calls that wait beyond those in flight. Default 4096; one more fails with RESOURCE_EXHAUSTED. */
  queueMax?: number;
  /** Largest response accepted, bytes. Default 64 MiB, at most 4 GiB - 1. */
  maxMessageBytes?: number;
  /** One attempt to connect. Default 5000. */
  connectTimeoutMs?: number;
  /** Time limit of calls that have none of their own. Default: none. */
  timeoutMs?: number;
  /** What the server is told about this process. Default: its process id. */
  identity?: string;
  /** Gets one line per connection: the fabric chosen, and why no other. Default: a process warning, only when one was skipped. */
  log?: Log;
}

export const channelRules: OptionRules = {
  inflightMax: { kind: 'integer', range: limits.inflight },
  streamsMax: { kind: 'integer', range: limits.streams },
  queueMax: { kind: 'integer', range: limits.queuedCalls },
  maxMessageBytes: { kind: 'integer', range: limits.messageBytes },
  connectTimeoutMs: { kind: 'integer', range: limits.connectTimeoutMs },
  timeoutMs: { kind: 'time' },
  identity: { kind: 'text', default: `pid ${process.pid}`, maxBytes: limits.controlTextBytes },
  log: { kind: 'function' },
  ...fabricRules,
};

type Resolved = Required<Omit<ChannelOptions, 'log' | keyof FabricOptions>> &
  Pick<ChannelOptions, 'log'> &
  CheckedFabricOptions;

/** `idle`: no connection, the next call makes one. */
export type ChannelState = 'idle' | 'connecting' | 'ready' | 'closed';

/** What a channel needs of the world: how to reach the server, and what ends with it. */
export interface Route {
  readonly address: string;
  readonly dial: Dial;
  /** Instead of those that the options allow. */
  readonly fabrics?: readonly FabricName[];
  readonly onClosed?: () => Promise<void>;
}

// The executor stores here, so that a call needs no closure for its promise.
let newResolve: Resolve;
let newReject: Reject;
function capture(resolve: Resolve, reject: Reject): void {
  newResolve = resolve;
  newReject = reject;
}

const retryFirstMs = 20;
const retryMaxMs = 1000;

export class Channel implements ClientLinkOwner, StreamChannel {
  /** As given to createChannel. */
  readonly address: string;
  /** @internal Where streams start. */
  readonly streams: ChannelStreams;

  readonly #options: Resolved;
  readonly #route: Route;
  readonly #plan: FabricPlan;
  readonly #waiting = new WaitingCalls();
  readonly #links = new Set<ClientLink>();
  readonly #keepAlive: KeepAlive;
  /** The connection for new calls. */
  #current: ClientLink | undefined;
  #connecting: Promise<void> | undefined;
  #abandon: AbortController | undefined;
  #closed: Promise<void> | undefined;
  #onLastLink: (() => void) | undefined;

  /** @internal createChannel() is the way to make one */
  constructor(route: Route, options: ChannelOptions | undefined) {
    this.#options = checkedOptions<Resolved>('createChannel', options, channelRules);
    checkCallSlots('createChannel', this.#options);
    this.#route = route;
    this.address = route.address;
    this.streams = new ChannelStreams(this, this.#options.queueMax);
    this.#plan = fabricPlan(options, this.#options, route.fabrics);
    this.#keepAlive = new KeepAlive(() => this.#busy());
  }

  get state(): ChannelState {
    if (this.#closed !== undefined) return 'closed';
    if (this.#current !== undefined) return 'ready';
    return this.#connecting === undefined ? 'idle' : 'connecting';
  }

  /** Fabric of the current connection, undefined without one. */
  get fabric(): FabricName | undefined {
    return this.#current?.connection.fabric;
  }

  /** What is behind the channel now, undefined without a connection. */
  get session(): SessionSummary | undefined {
    const connection = this.#current?.connection;
    return connection === undefined ? undefined : summaryOf(connection, connection.serverIdentity);
  }

  /**
   * Resolves when the channel is connected. Without `timeoutMs` it makes one attempt; with it, attempts until the time is over, which
   * waits for a server that is still starting. Rejects with UNAVAILABLE, or CANCELLED when `signal` fires.
   */
  async ready(options: { timeoutMs?: number; signal?: AbortSignal } = {}): Promise<void> {
    checkNames('ready', options, ['timeoutMs', 'signal']);
    const { signal } = options;
    const timeoutMs =
      options.timeoutMs === undefined ? 0 : checkedTimeMs('ready: timeoutMs', options.timeoutMs);
    const endMs = performance.now() + timeoutMs;
    for (let pauseMs = retryFirstMs; ; pauseMs = Math.min(retryMaxMs, pauseMs * 2)) {
      if (signal?.aborted)
        throw new RpcError(Status.CANCELLED, 'ready: cancelled by the caller', {
          sent: 'no',
          cause: signal.reason,
        });
      try {
        return await this.#connected();
      } catch (error) {
        if (this.#closed !== undefined || performance.now() + pauseMs >= endMs) throw error;
      }
      await sleep(pauseMs, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
    }
  }

  /** Ends the connection. Calls in flight and waiting ones fail with UNAVAILABLE. Resolves when nothing of it is left. */
  close(): Promise<void> {
    this.#closed ??= this.#end();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal Where leases for the channel come from: the context behind it, or the one that its first fabric will have. */
  get context(): FabricContext {
    const current = this.#current?.connection.context;
    if (current !== undefined) return current;
    const side = this.#side();
    const fabric = side.fabrics[0]!;
    if (side.isolated)
      throw unavailable(
        `${this.address}: a channel with isolation 'session' has memory only while it is connected; await ready() first`,
      );
    return peekContext(choiceOf(side, fabric));
  }

  /** @internal Of calls that have no limit of their own, -1 for none. */
  get defaultTimeoutMs(): number {
    return this.#options.timeoutMs;
  }

  /** @internal The start of every call. */
  unary(method: ClientMethod, request: unknown, options: CallOptions | undefined): Promise<unknown> {
    let timeoutMs = method.timeoutMs;
    let extras: CallExtras | undefined;
    if (options !== undefined) {
      try {
        timeoutMs = callTimeoutMs(options, timeoutMs);
        extras = callExtras(method.path, options);
      } catch (error) {
        return Promise.reject(error);
      }
    }
    const current = this.#current;
    let deadlineMs = 0;
    if (timeoutMs >= 0) {
      if (timeoutMs === 0)
        return Promise.reject(failure(Reason.deadline, method.path, 'no', 'no time was left'));
      deadlineMs = turnNow() + timeoutMs;
    }
    if (!this.#keepAlive.running) this.#keepAlive.start();
    const promise = new Promise<unknown>(capture);
    const resolve = newResolve;
    const reject = newReject;
    if (
      current === undefined ||
      this.#waiting.size !== 0 ||
      !current.session.start(method, request, deadlineMs, extras, resolve, reject)
    ) {
      this.#wait(method, request, deadlineMs, extras, resolve, reject);
    }
    return promise;
  }

  /** @internal */
  get openStreams(): ClientStreams | undefined {
    return this.#current?.streams;
  }

  /** @internal */
  admit(path: string): Error | undefined {
    if (this.#closed !== undefined) return unavailable(`${path}: the channel is closed`);
    if (!this.#keepAlive.running) this.#keepAlive.start();
    return undefined;
  }

  /** @internal Sends what waits, as far as there is room. */
  pump(): void {
    const current = this.#current;
    if (current === undefined) return;
    if (this.streams.size !== 0) this.streams.pump();
    for (let call = this.#waiting.head; call !== undefined; call = this.#waiting.head) {
      if (!call.startOn(current.session)) {
        if (!current.session.full) current.connection.context.awaitSlots(this);
        return;
      }
      this.#waiting.remove(call);
    }
  }

  /** @internal */
  onSlotsFree(): void {
    this.pump();
  }

  /** @internal */
  onRetired(link: ClientLink): void {
    if (this.#current !== link) return;
    this.#current = undefined;
    // These were never sent, so another connection may serve them; if there is none to be had, they fail with that attempt.
    if (this.#waiting.size + this.streams.size !== 0) this.connectForWaiting();
  }

  /** @internal */
  onDown(link: ClientLink): void {
    this.#links.delete(link);
    if (this.#links.size === 0) this.#onLastLink?.();
    this.onRetired(link);
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
    if (this.#closed !== undefined) {
      reject(unavailable(`${method.path}: the channel is closed`));
      return;
    }
    if (this.#waiting.size >= this.#options.queueMax) {
      reject(queueFull(method.path, this.#options.queueMax));
      return;
    }
    this.#waiting.push(new WaitingCall(this.#waiting, method, request, deadlineMs, extras, resolve, reject));
    const current = this.#current;
    if (current === undefined) this.connectForWaiting();
    else if (!current.session.full) current.connection.context.awaitSlots(this);
  }

  /** @internal */
  connectForWaiting(): void {
    this.#connected().catch((error: Error) => {
      const known = RpcError.from(error, Status.UNAVAILABLE);
      const options = { sent: 'no', cause: error } as const;
      this.#failWaiting((path) => new RpcError(known.code, `${path}: ${known.rawMessage}`, options));
    });
  }

  #failWaiting(errorFor: (path: string) => Error): void {
    this.#waiting.failAll((method) => errorFor(method.path));
    this.streams.failAll(errorFor);
  }

  /** Resolves when there is a connection: this one attempt, shared by all who wait for it. */
  #connected(): Promise<void> {
    if (this.#closed !== undefined)
      return Promise.reject(unavailable(`${this.address}: the channel is closed`));
    if (this.#current !== undefined) return Promise.resolve();
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  #side(): LocalSide {
    const { inflightMax, streamsMax, maxMessageBytes, identity, log } = this.#options;
    const own = { role: 'client', inflightMax, streamsMax, maxMessageBytes, identity } as const;
    return { ...own, log: fabricLog(log), ...offers(this.#plan) };
  }

  async #connect(): Promise<void> {
    const abandon = new AbortController();
    this.#abandon = abandon;
    const { connectTimeoutMs } = this.#options;
    const timer = setTimeout(
      () =>
        abandon.abort(
          new Error(`no answer within ${connectTimeoutMs} ms (option connectTimeoutMs of the channel)`),
        ),
      connectTimeoutMs,
    );
    try {
      const { link, connection } = await openConnection(
        this.#route.dial,
        this.#side(),
        this.address,
        abandon.signal,
      );
      const current = new ClientLink(connection, link, this, this.#waiting);
      this.#links.add(current);
      if (this.#closed !== undefined) current.close('the channel was closed');
      else if (link.ended !== undefined) throw unavailable(link.ended);
      else this.#current = current;
    } catch (error) {
      const known = RpcError.from(error, Status.UNAVAILABLE);
      const text = `cannot connect to ${this.address}: ${known.rawMessage}`;
      throw new RpcError(known.code, text, { sent: 'no', cause: error });
    } finally {
      clearTimeout(timer);
      this.#abandon = undefined;
    }
    this.pump();
  }

  #busy(): boolean {
    if (this.#waiting.size + this.streams.size > 0) return true;
    for (const link of this.#links) if (link.session.inFlight > 0) return true;
    return false;
  }

  async #end(): Promise<void> {
    const connecting = this.#connecting;
    this.#abandon?.abort(new Error('the channel was closed'));
    this.#current = undefined;
    this.#failWaiting((path) => unavailable(`${path}: the channel was closed`));
    await connecting?.catch(() => undefined);
    for (const link of [...this.#links]) link.close('the channel was closed');
    await this.#linksGone();
    this.#keepAlive.stop();
    await this.#route.onClosed?.();
  }

  #linksGone(): Promise<void> {
    if (this.#links.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, limits.closeTimeoutMs);
      this.#onLastLink = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** A channel to `host:port`, `[ipv6]:port` or `unix:/path`. Does not connect yet. Throws for a bad address or option. */
export function createChannel(address: string, options?: ChannelOptions): Channel {
  const parsed = parseAddress(address);
  return new Channel({ address, dial: socketDial(parsed) }, options);
}
