/**
 * The public interfaces of calls from a server to its clients: the parameters and results of serveReverse()
 * and peersOf(). The classes that implement them are in the other files of this folder.
 */
import type { ServiceDefinition } from '../codec/types.ts';
import type { HandlerContext } from '../core/handler-context.ts';
import type { Interceptor } from '../core/interceptor.ts';
import type { PeerInfo } from '../core/peer.ts';
import type { Client, Handlers } from '../core/types.ts';
import type { OnHandlerError } from '../core/warnings.ts';

export interface ReverseOptions {
  /** Runs for errors of handlers that are not RpcErrors. The server only gets the status INTERNAL. */
  onHandlerError?: OnHandlerError;
  /** Interceptors of the handlers of all services. The first interceptor is the outermost. Default: none. */
  interceptors?: readonly Interceptor[];
}

/** A client that serves calls of its server. */
export interface ReverseServer extends AsyncDisposable {
  /** Resolves when the server can make calls. Rejects when the server will never make calls. */
  readonly ready: Promise<void>;
  /** Serves the methods of `definition` for which `handlers` has a function. Throws as `server.add` does. */
  add<D extends ServiceDefinition>(definition: D, handlers: Partial<Handlers<D>>): this;
  /** Stops serving. The signals of running handlers are aborted. */
  close(): Promise<void>;
}

/** A client that serves calls of its server. Its text form is its name. */
export interface Peer {
  /**
   * The address of the client, and the name that it has given itself. It is for logs only, because the name
   * is not verified.
   */
  readonly name: string;
  /**
   * The peer, with a verified `identity`. It is the same as `context.peer` of the handlers that the client
   * calls.
   */
  readonly info: PeerInfo;
  /** True while the client can be called. */
  readonly connected: boolean;
}

/** A client for the unary methods of a service. */
export type UnaryClient<D extends ServiceDefinition> = {
  readonly [K in keyof D['methods'] as D['methods'][K] extends {
    readonly requestStream: false;
    readonly responseStream: false;
  }
    ? K
    : never]: Client<D>[K];
};

/** `peer`: a client has begun to serve. `gone`: it has stopped, or its connection has ended. */
export interface PeerEvents {
  peer: [Peer];
  gone: [Peer];
}

/** The clients that serve calls of a server. */
export interface Peers {
  /** The clients that serve now. */
  readonly all: readonly Peer[];
  /**
   * Returns the peer on whose connection a handler's call arrived, or undefined when this peer does not
   * serve.
   */
  of(context: HandlerContext): Peer | undefined;
  /**
   * Returns a client of `definition` that calls `to`, which is a peer or the context of a handler whose
   * caller is to be called. `timeoutMs` is the default time limit of the calls. `interceptors` wrap the
   * calls; the first interceptor is the outermost. Throws FAILED_PRECONDITION when the caller does not serve.
   */
  client<D extends ServiceDefinition>(
    definition: D,
    to: Peer | HandlerContext,
    defaults?: { timeoutMs?: number; interceptors?: readonly Interceptor[] },
  ): Client<D>;
  /**
   * Calls `listener` when a client has begun to serve (`peer`) or has stopped serving (`gone`), like an
   * EventEmitter.
   */
  on(event: keyof PeerEvents, listener: (peer: Peer) => void): this;
  /** Calls `listener` for the next event only. */
  once(event: keyof PeerEvents, listener: (peer: Peer) => void): this;
  /** Removes a listener of `on` or `once`. */
  off(event: keyof PeerEvents, listener: (peer: Peer) => void): this;
}
