/**
 * The clients that serve calls of their server, one for each connection on which the client serves. `peersOf`
 * makes the server accept such clients. This file runs on the server's JS thread.
 */
import { EventEmitter } from 'node:events';
import { inspect } from 'node:util';
import { createClient } from '../client/client.ts';
import type { ServiceDefinition } from '../codec/types.ts';
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import type { HandlerContext } from '../core/handler-context.ts';
import { checkedInterceptors, type Interceptor } from '../core/interceptor.ts';
import { warn } from '../core/log.ts';
import { checkedTimeMs, checkNames } from '../core/options.ts';
import { inRoot } from '../core/scopes.ts';
import type { Client, ClientDefaults } from '../core/types.ts';
import { type RpcServer, rpcServer } from '../server/server.ts';
import { ServerCall } from '../server/server-call.ts';
import type { ServerConnection } from '../server/server-connection.ts';
import type { Server } from '../server/server-type.ts';
import { Calling, type CallingOwner } from './calling.ts';
import { ReverseDefinition } from './gen/rdma_rpc/reverse.rdma.ts';
import { RpcPeer } from './peer.ts';
import type { Peer, PeerEvents, Peers } from './reverse-type.ts';

function shown(error: unknown): string {
  try {
    return inspect(error);
  } catch {
    return 'an error that cannot be shown';
  }
}

/**
 * A client may serve only if `authorize` allows it to call this method. Only clients of older releases really
 * call the method, in order to serve.
 */
const serveMethod = ReverseDefinition.methods.serve.fullName;

class RpcPeers extends EventEmitter<PeerEvents> implements Peers, CallingOwner {
  readonly #server: RpcServer;
  /** Peers by the first session of their connection. */
  readonly #peers = new Map<object, RpcPeer>();

  constructor(server: RpcServer) {
    super({ captureRejections: true });
    this.#server = server;
    server.features.calls = (connection) => new Calling(connection, this);
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
  ): Client<D> {
    const what = `client of ${definition.fullName}`;
    checkNames(what, defaults, ['timeoutMs', 'interceptors']);
    if (defaults.timeoutMs !== undefined) checkedTimeMs(`${what}: timeoutMs`, defaults.timeoutMs);
    checkedInterceptors(what, defaults.interceptors);
    const peer = to instanceof RpcPeer ? to : this.of(to as HandlerContext);
    if (peer === undefined) {
      const text = `${definition.fullName}: this client serves no calls; it must call serveReverse(channel) first`;
      throw new RpcError(Status.FAILED_PRECONDITION, text, { processed: 'no' });
    }
    return createClient(definition, peer.channel, { '*': defaults } as ClientDefaults<D>);
  }

  authorize({ session }: ServerConnection): Promise<void> | undefined {
    return this.#server.authorize(session.peer, serveMethod);
  }

  onPeer({ session }: ServerConnection, peer: RpcPeer): void {
    this.#peers.set(session, peer);
    this.#tell('peer', peer);
  }

  onGone({ session }: ServerConnection, peer: RpcPeer): void {
    if (this.#peers.get(session) !== peer) return;
    this.#peers.delete(session);
    this.#tell('gone', peer);
  }

  /**
   * Calls the listeners of an event. An error of a listener becomes a warning. A listener gets the events of
   * all clients, so it runs outside of the async context of any single connection.
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
}

/**
 * Makes `server` accept clients that serve its calls (serveReverse). When the server shuts down, the clients
 * stay until their last response. Clients of older releases, which called a method in order to serve, get an
 * error that says what to do.
 */
export function peersOf(server: Pick<Server, 'add'> & Partial<Pick<Server, 'onShutdown'>>): Peers {
  const own = rpcServer('peersOf', server as Server);
  own.add(ReverseDefinition, {
    serve: () => {
      const text = `${serveMethod}: this client is of a release that serves calls in another way; use the same rdma-rpc release on both sides`;
      throw new RpcError(Status.UNIMPLEMENTED, text, { processed: 'no' });
    },
  });
  return new RpcPeers(own);
}
