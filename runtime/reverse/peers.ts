/**
 * The clients of a server that serve calls of it. `peersOf` adds the service that they connect to; on the
 * server's JS thread.
 */
import { EventEmitter } from 'node:events';
import { inspect } from 'node:util';
import { clientMethod } from '../client/call/client-method.ts';
import { type ClientMethodFunction, interceptedCall } from '../client/call/intercepted-call.ts';
import type { ServiceDefinition } from '../codec/types.ts';
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import type { HandlerContext } from '../core/handler-context.ts';
import { checkedInterceptors, type Interceptor } from '../core/interceptor.ts';
import { leaseOf } from '../core/lease.ts';
import { warn } from '../core/log.ts';
import { checkedTimeMs, checkNames } from '../core/options.ts';
import { inRoot } from '../core/scopes.ts';
import { ServerCall } from '../server/server-call.ts';
import type { Server } from '../server/server-type.ts';
import { type Answer, type CallInit, ReverseDefinition } from './gen/reverse.rdma.ts';
import { RpcPeer } from './peer.ts';
import type { Peer, PeerEvents, Peers, UnaryClient } from './reverse-type.ts';

function shown(error: unknown): string {
  try {
    return inspect(error);
  } catch {
    return 'an error that cannot be shown';
  }
}

export class RpcPeers extends EventEmitter<PeerEvents> implements Peers {
  readonly #peers = new Map<object, RpcPeer>();

  constructor() {
    super({ captureRejections: true });
  }

  get all(): readonly RpcPeer[] {
    return [...this.#peers.values()];
  }

  of(context: HandlerContext): RpcPeer | undefined {
    return context instanceof ServerCall ? this.#peers.get(context.session) : undefined;
  }

  client<D extends ServiceDefinition>(
    definition: D,
    to: Peer | HandlerContext,
    defaults: { timeoutMs?: number; interceptors?: readonly Interceptor[] } = {},
  ): UnaryClient<D> {
    const what = `client of ${definition.fullName}`;
    checkNames(what, defaults, ['timeoutMs', 'interceptors']);
    if (defaults.timeoutMs !== undefined) checkedTimeMs(`${what}: timeoutMs`, defaults.timeoutMs);
    const interceptors = checkedInterceptors(what, defaults.interceptors);
    const peer = to instanceof RpcPeer ? to : this.of(to as HandlerContext);
    if (peer === undefined) {
      const text = `${definition.fullName}: this client serves no calls; it has to, by serveReverse(channel)`;
      throw new RpcError(Status.FAILED_PRECONDITION, text, { processed: 'no' });
    }
    const client: Record<string, unknown> = {};
    for (const [name, method] of Object.entries(definition.methods)) {
      if (method.requestStream || method.responseStream) continue;
      const target = clientMethod(method, defaults.timeoutMs ?? -1);
      const call: ClientMethodFunction = (request, options) => peer.call(target, request, options);
      client[name] =
        interceptors.length === 0
          ? call
          : interceptedCall(definition, method, target.timeoutMs, interceptors, peer.name, call);
    }
    return Object.freeze(client) as UnaryClient<D>;
  }

  /** The handler of Reverse.Serve. */
  async *serve(answers: AsyncIterable<Answer>, context: HandlerContext): AsyncGenerator<CallInit> {
    if (!(context instanceof ServerCall)) throw new TypeError('the context of another server');
    if (this.#peers.has(context.session)) {
      throw new RpcError(Status.ALREADY_EXISTS, 'this connection serves already', { processed: 'yes' });
    }
    const peer = new RpcPeer(context.peer);
    this.#peers.set(context.session, peer);
    // Not awaited in the end: the client ends its answers when this side has ended its calls.
    void this.#read(peer, answers);
    try {
      yield { number: 0 };
      this.#tell('peer', peer);
      yield* peer.calls;
    } finally {
      this.#peers.delete(context.session);
      peer.end('the client serves no more, or its connection is gone');
      this.#tell('gone', peer);
    }
  }

  /**
   * A listener that fails ends neither the stream nor the process. It hears of all clients, so it runs
   * without what interceptors have entered for the stream of one.
   */
  #tell(event: keyof PeerEvents, peer: Peer): void {
    try {
      inRoot(this.emit, this, event, peer);
    } catch (error) {
      this.#onFault(error, event);
    }
  }

  [Symbol.for('nodejs.rejection')](error: unknown, event: unknown): void {
    this.#onFault(error, event);
  }

  #onFault(error: unknown, event: unknown): void {
    warn(`peersOf: a listener of '${String(event)}' has failed: ${shown(error)}`);
  }

  async #read(peer: RpcPeer, answers: AsyncIterable<Answer>): Promise<void> {
    try {
      for await (const answer of answers) {
        peer.onAnswer(answer);
        // What it held has been decoded, which copies.
        leaseOf(answer)?.release();
      }
    } catch {
      // The stream has failed: serve() learns it, too.
    }
    peer.calls.end();
  }
}

/**
 * Adds the service that clients serve through to `server`. When it shuts down, clients leave with their last
 * answer.
 */
export function peersOf(server: Pick<Server, 'add'> & Partial<Pick<Server, 'onShutdown'>>): Peers {
  const peers = new RpcPeers();
  server.onShutdown?.(() => {
    for (const peer of peers.all) peer.drain('the server is shutting down');
  });
  server.add(ReverseDefinition, { serve: (answers, context) => peers.serve(answers, context) });
  return peers;
}
