/**
 * Serves calls of the servers of a channel. Each connection has one second session (serving.ts), and all
 * sessions have the same handlers. This file runs on the channel's JS thread.
 */

import { type ChannelServing, type ClientChannel, clientChannel } from '../client/channel.ts';
import type { Channel } from '../client/channel-type.ts';
import type { ClientLink } from '../client/connections/client-link.ts';
import type { ServiceDefinition } from '../codec/types.ts';
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import { checkedInterceptors, type Interceptor } from '../core/interceptor.ts';
import { checkNames } from '../core/options.ts';
import { inRoot } from '../core/scopes.ts';
import type { Handlers } from '../core/types.ts';
import { HandlerErrors } from '../core/warnings.ts';
import * as limits from '../limits.ts';
import { HandlerTable } from '../server/handlers.ts';
import { Load } from '../server/load.ts';
import { reverseRetryMs } from './limits.ts';
import type { ReverseOptions, ReverseServer } from './reverse-type.ts';
import { Serving, type ServingOwner } from './serving.ts';

const refused = (code: typeof Status.ALREADY_EXISTS | typeof Status.UNIMPLEMENTED, text: string): RpcError =>
  new RpcError(code, text, { processed: 'no' });

class RpcReverseServer implements ReverseServer, ChannelServing, ServingOwner {
  readonly handlers = new HandlerTable();
  readonly load = new Load(limits.handlers.default, 'handlers of calls from servers are running already');
  readonly ready: Promise<void>;

  readonly #channel: ClientChannel;
  readonly #errors: HandlerErrors;
  readonly #interceptors: readonly Interceptor[];
  /** Connections on which this side has offered to serve, with any result. */
  readonly #asked = new WeakSet<ClientLink>();
  readonly #servings = new Set<Serving>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #succeed!: () => void;
  #fail!: (error: unknown) => void;
  /** True after `ready` has resolved. */
  #served = false;
  #closed = false;

  constructor(channel: Channel, options: ReverseOptions) {
    checkNames('serveReverse', options, ['onHandlerError', 'interceptors']);
    this.#interceptors = checkedInterceptors('serveReverse', options.interceptors);
    this.#channel = clientChannel('serveReverse', channel);
    this.#errors = new HandlerErrors(options.onHandlerError);
    this.ready = new Promise((resolve, reject) => {
      this.#succeed = resolve;
      this.#fail = reject;
    });
    // This avoids an unhandled rejection in applications that do not use `ready`.
    this.ready.catch(() => undefined);
    if (this.#channel.closed) this.onClosed();
    // The loop runs in the root context, because the object serves all callers, not only the caller of this
    // function.
    else if (!inRoot(() => this.#channel.serve(this))) {
      this.#closed = true;
      const text =
        'serveReverse() was already called on this channel; add services to its result, or close it first';
      this.#fail(refused(Status.ALREADY_EXISTS, text));
    }
  }

  add<D extends ServiceDefinition>(definition: D, handlers: Partial<Handlers<D>>): this {
    this.handlers.add(definition, handlers, this.#interceptors);
    return this;
  }

  async close(): Promise<void> {
    this.#stop(new RpcError(Status.CANCELLED, 'serveReverse: closed', { processed: 'no' }));
    await Promise.all([...this.#servings].map((each) => each.close('the client serves no more')));
    this.#errors.sum();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  onReady(links: readonly ClientLink[]): void {
    for (const link of links) if (!this.#asked.has(link)) this.#begin(link);
  }

  onClosed(): void {
    this.#stop(new RpcError(Status.UNAVAILABLE, 'serveReverse: the channel is closed', { processed: 'no' }));
  }

  onHandlerError(error: unknown, method: string): void {
    this.#errors.report(error, method);
  }

  onServed(): void {
    this.#served = true;
    this.#succeed();
  }

  onOver(serving: Serving, error: RpcError, isFinal: boolean): void {
    this.#servings.delete(serving);
    if (isFinal) this.#refused(error);
    else this.#later(serving.link);
  }

  #begin(link: ClientLink): void {
    if (this.#closed || link.ended !== undefined || link.draining) return;
    this.#asked.add(link);
    const { second, server } = link.connection;
    if (second === undefined) {
      const text = `${server.address}: this server is of a release that makes no calls to clients in this way; use the same rdma-rpc release on both sides`;
      this.#refused(refused(Status.UNIMPLEMENTED, text));
      return;
    }
    try {
      this.#servings.add(new Serving(link, second.open(), this));
    } catch {
      // This side has no room for another session now, so it tries again later.
      this.#later(link);
    }
  }

  /**
   * Runs when a server does not make calls to its clients. If it is the only server of the channel, no calls
   * will ever come.
   */
  #refused(error: RpcError): void {
    if (!this.#served && this.#channel.addresses.length <= 1) this.#stop(error);
  }

  /** Offers again after a pause to serve on a connection that is still open. */
  #later(link: ClientLink): void {
    if (this.#closed || link.ended !== undefined) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.#begin(link);
    }, reverseRetryMs);
    this.#timers.add(timer.unref());
  }

  /** Stops serving. From now on, another object may serve on the channel. */
  #stop(error: unknown): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#channel.serveNoMore(this);
    this.#fail(error);
  }
}

/**
 * Serves calls that the servers of `channel` make to this client, over the channel's connections, until
 * `close()`. The server must use `peersOf(server)`. Connects the channel, and keeps the process alive like a
 * listening server. Only one such object can serve on a channel. The promise `ready` of a second object
 * rejects with ALREADY_EXISTS.
 */
export function serveReverse(channel: Channel, options: ReverseOptions = {}): ReverseServer {
  return new RpcReverseServer(channel, options);
}
