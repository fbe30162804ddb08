/**
 * Calls from a server to its clients as applications see them: what serveReverse() and peersOf() take and
 * give. The classes behind them are in the files beside this one.
 */
import type { ServiceDefinition } from '../codec/types.ts';
import type { HandlerContext } from '../core/handler-context.ts';
import type { Interceptor } from '../core/interceptor.ts';
import type { PeerInfo } from '../core/peer.ts';
import type { Client, Handlers } from '../core/types.ts';
import type { OnHandlerError } from '../core/warnings.ts';

export interface ReverseOptions {
  /** Told about errors of handlers that are no RpcError. The server learns only INTERNAL. */
  onHandlerError?: OnHandlerError;
  /** Around the handlers of all services, the first is outermost. Default: none. */
  interceptors?: readonly Interceptor[];
}

/** A client that serves calls of its server. */
export interface ReverseServer extends AsyncDisposable {
  /** Resolves when the server can call; rejects when it never will. */
  readonly ready: Promise<void>;
  /** Serves the methods of `definition` that `handlers` has. Throws as `server.add` does. */
  add<D extends ServiceDefinition>(definition: D, handlers: Partial<Handlers<D>>): this;
  /** Serves no more. Handlers that run are told by their signals. */
  close(): Promise<void>;
}

/** A client that serves, as the server sees it. As text: its name. */
export interface Peer {
  /** Address and self-given name, for people: nobody has checked it. */
  readonly name: string;
  /** Who it is, as `context.peer` of the handlers that it calls: its `identity` was verified. */
  readonly info: PeerInfo;
  /** Whether it can still be called. */
  readonly connected: boolean;
}

/** The client of a service, with its unary methods only. */
export type UnaryClient<D extends ServiceDefinition> = {
  readonly [K in keyof D['methods'] as D['methods'][K] extends {
    readonly requestStream: false;
    readonly responseStream: false;
  }
    ? K
    : never]: Client<D>[K];
};

/** `peer`: a client has begun to serve. `gone`: it has ended, or its connection has. */
export interface PeerEvents {
  peer: [Peer];
  gone: [Peer];
}

/** The clients of a server that serve. */
export interface Peers {
  /** Those that serve now. */
  readonly all: readonly Peer[];
  /** The peer on whose connection a handler's call came, undefined when it does not serve. */
  of(context: HandlerContext): Peer | undefined;
  /**
   * A client of `definition` that calls `to`: a peer, or the one that has made a handler's call. `timeoutMs`:
   * default limit of its calls. `interceptors`: around them, the first is outermost. Throws
   * FAILED_PRECONDITION when the caller does not serve.
   */
  client<D extends ServiceDefinition>(
    definition: D,
    to: Peer | HandlerContext,
    defaults?: { timeoutMs?: number; interceptors?: readonly Interceptor[] },
  ): Client<D>;
  /**
   * Calls `listener` when a client has begun to serve (`peer`), or has ended (`gone`), as an EventEmitter
   * does.
   */
  on(event: keyof PeerEvents, listener: (peer: Peer) => void): this;
  /** The same for the next one only. */
  once(event: keyof PeerEvents, listener: (peer: Peer) => void): this;
  /** Ends what `on` or `once` has begun. */
  off(event: keyof PeerEvents, listener: (peer: Peer) => void): this;
}
