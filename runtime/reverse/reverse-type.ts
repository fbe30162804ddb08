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
  /** Called for errors of handlers that are not RpcErrors. The server gets only INTERNAL. */
  onHandlerError?: OnHandlerError;
  /** Interceptors of the handlers of all services, the first one outermost. Default: none. */
  interceptors?: readonly Interceptor[];
}

/** A client that serves calls of its server. */
export interface ReverseServer extends AsyncDisposable {
  /** Resolves when the server can make calls; rejects when it never will. */
  readonly ready: Promise<void>;
  /** Serves the methods of `definition` that `handlers` has. Throws as `server.add` does. */
  add<D extends ServiceDefinition>(definition: D, handlers: Partial<Handlers<D>>): this;
  /** Stops serving. The signals of running handlers are aborted. */
  close(): Promise<void>;
}

/** A client that serves calls of its server. Its text is its name. */
export interface Peer {
  /** Address and self-given name, for logs; not verified. */
  readonly name: string;
  /** The peer, as in `context.peer` of the handlers that it calls; its `identity` was verified. */
  readonly info: PeerInfo;
  /** True while it can be called. */
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

/** The clients of a server that serve. */
export interface Peers {
  /** The clients that serve now. */
  readonly all: readonly Peer[];
  /** Returns the peer on whose connection a handler's call arrived; undefined when it does not serve. */
  of(context: HandlerContext): Peer | undefined;
  /**
   * Returns a client of `definition` that calls `to`: a peer, or the caller of a handler's call. `timeoutMs`
   * is the default limit of its calls. `interceptors` wrap them, the first one outermost. Throws
   * FAILED_PRECONDITION when the caller does not serve.
   */
  client<D extends ServiceDefinition>(
    definition: D,
    to: Peer | HandlerContext,
    defaults?: { timeoutMs?: number; interceptors?: readonly Interceptor[] },
  ): Client<D>;
  /**
   * Calls `listener` when a client has begun to serve (`peer`) or has stopped (`gone`), like an EventEmitter.
   */
  on(event: keyof PeerEvents, listener: (peer: Peer) => void): this;
  /** Calls `listener` for the next one only. */
  once(event: keyof PeerEvents, listener: (peer: Peer) => void): this;
  /** Removes a listener of `on` or `once`. */
  off(event: keyof PeerEvents, listener: (peer: Peer) => void): this;
}
