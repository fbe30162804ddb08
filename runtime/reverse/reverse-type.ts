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
  /** Called with errors of handlers that are no RpcError. The server gets only INTERNAL. */
  onHandlerError?: OnHandlerError;
  /** Interceptors around the handlers of all services; the first is outermost. Default: none. */
  interceptors?: readonly Interceptor[];
}

/** A client that serves calls of its server. */
export interface ReverseServer extends AsyncDisposable {
  /** Resolves when a server can make calls; rejects when none ever will. */
  readonly ready: Promise<void>;
  /** Serves the methods of `definition` that `handlers` has. Throws as `server.add` does. */
  add<D extends ServiceDefinition>(definition: D, handlers: Partial<Handlers<D>>): this;
  /** Stops serving. The signals of running handlers fire. */
  close(): Promise<void>;
}

/** A client that serves, as the server sees it. Converted to a string it is its name. */
export interface Peer {
  /** Address and self-given name, for logs. It is not verified. */
  readonly name: string;
  /** The same as `context.peer` of the handlers that this client calls. Its `identity` was verified. */
  readonly info: PeerInfo;
  /** Whether the client can still be called. */
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

/**
 * `peer` is emitted when a client has begun to serve, `gone` when it has stopped or its connection has ended.
 */
export interface PeerEvents {
  peer: [Peer];
  gone: [Peer];
}

/** The clients of a server that serve. */
export interface Peers {
  /** The clients that serve at the moment. */
  readonly all: readonly Peer[];
  /** Returns the client that made this handler's call, or undefined when that client does not serve. */
  of(context: HandlerContext): Peer | undefined;
  /**
   * Returns a client of `definition` whose calls go to `to`: a peer, or the caller of the handler with that
   * context. `timeoutMs` is the default time limit of its calls, `interceptors` are around them, the first
   * outermost. Throws FAILED_PRECONDITION when that caller does not serve.
   */
  client<D extends ServiceDefinition>(
    definition: D,
    to: Peer | HandlerContext,
    defaults?: { timeoutMs?: number; interceptors?: readonly Interceptor[] },
  ): Client<D>;
  /**
   * Calls `listener` each time a client has begun to serve (`peer`) or has stopped (`gone`), as an
   * EventEmitter does.
   */
  on(event: keyof PeerEvents, listener: (peer: Peer) => void): this;
  /** Calls `listener` for the next such event only. */
  once(event: keyof PeerEvents, listener: (peer: Peer) => void): this;
  /** Removes a listener that `on` or `once` has added. */
  off(event: keyof PeerEvents, listener: (peer: Peer) => void): this;
}
