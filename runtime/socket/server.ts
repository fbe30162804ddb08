/**
 * Servers of sockets. createServer() makes a server with its own addresses, and addSockets() adds sockets to
 * a server of services. They run on the server's JS thread.
 */
import { EventEmitter } from 'node:events';
import type { AddressInfo } from 'node:net';
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import type { HandlerContext } from '../core/handler-context.ts';
import { checkNames } from '../core/options.ts';
import { graceMs } from '../limits.ts';
import { createServer as createRpcServer } from '../server/server.ts';
import type { ServerOptions } from '../server/server-options.ts';
import type { Server } from '../server/server-type.ts';
import { listenError } from './errors.ts';
import { socketsPerSession } from './limits.ts';
import { Line, type LineOwner } from './line.ts';
import { addressInfo, addressText, endpointOf, noEndpoint, type SocketAddress } from './place.ts';
import { type OutgoingSegment, type Segment, socketService } from './segment.ts';
import { Socket, socketControl } from './socket.ts';
import type { SocketOptions } from './socket-type.ts';

/** Options of the sockets of a server, as in `node:net`. */
export interface SocketServerOptions
  extends Pick<SocketOptions, 'allowHalfOpen' | 'highWaterMark' | 'writesStay'> {
  /** With `pauseOnConnect`, sockets do not read until `resume()`. Default false. */
  pauseOnConnect?: boolean;
}

/** Options of createServer(). */
export interface CreateServerOptions extends SocketServerOptions {
  /** Options of the underlying server: TLS, allow, authorize, quotas and so on. */
  server?: ServerOptions;
}

const socketNames: readonly (keyof SocketServerOptions)[] = [
  'allowHalfOpen',
  'highWaterMark',
  'writesStay',
  'pauseOnConnect',
];

/** The metadata with which a server accepts a connection. */
const acceptKey = 'rdma-rpc-socket';

export interface SocketServerEvents {
  connection: [Socket];
  listening: [];
  error: [Error];
  close: [];
  drop: [];
}

export class SocketServer extends EventEmitter<SocketServerEvents> {
  /**
   * Limit of open connections. Further connections are closed at once, and `drop` is emitted. Default: no
   * limit.
   */
  maxConnections: number | undefined;
  /** True from `listening` to `close()`. For sockets beside services, it is true until `close()`. */
  listening: boolean;

  readonly #server: Server;
  readonly #options: SocketServerOptions;
  readonly #owns: boolean;
  readonly #sockets = new Set<Socket>();
  #address: string | undefined;
  #closing = false;
  #closed = false;

  constructor(server: Server, options: SocketServerOptions, owns: boolean) {
    super();
    this.#server = server;
    this.#options = options;
    this.#owns = owns;
    this.listening = !owns;
    server.add(socketService, {
      connect: (segments, context) => this.#accept(segments, context),
    });
  }

  /**
   * Listens on `host:port`, `unix:/path`, `{ host, port }` (default host `::`) or `{ path }`. Emits
   * `listening`, or `error`. Only servers of createServer() have this method.
   */
  listen(address: SocketAddress | number, callback?: () => void): this {
    if (!this.#owns) throw new Error('listen: call listen() of the server to which the sockets were added');
    if (callback !== undefined) this.once('listening', callback);
    const given = typeof address === 'number' ? { port: address } : address;
    const text = addressText(given, '::');
    this.#server.listen(text).then(
      (bound) => {
        if (this.#closing) return;
        this.#address = bound;
        this.listening = true;
        this.emit('listening');
      },
      (error: unknown) => this.emit('error', listenError(text, error)),
    );
    return this;
  }

  /** The address to which clients connect, `host:port` or `unix:/path`; undefined before `listening`. */
  get where(): string | undefined {
    return this.#address;
  }

  /** Returns the address in the form of `node:net`: null before `listening`, and a path for a unix socket. */
  address(): AddressInfo | string | null {
    return this.#address === undefined ? null : addressInfo(this.#address);
  }

  /** Number of open connections. */
  get connections(): number {
    return this.#sockets.size;
  }

  getConnections(callback: (error: Error | null, count: number) => void): this {
    process.nextTick(callback, null, this.#sockets.size);
    return this;
  }

  /**
   * Accepts no more connections. Emits `close` when the open connections have ended. Other services of the
   * same server are not affected.
   */
  close(callback?: (error?: Error) => void): this {
    if (callback !== undefined) {
      if (this.#closing || !this.listening) {
        const error = Object.assign(new Error('Server is not running.'), { code: 'ERR_SERVER_NOT_RUNNING' });
        this.once('close', () => callback(error));
      } else this.once('close', () => callback());
    }
    if (!this.#closing) {
      this.#closing = true;
      this.listening = false;
      if (this.#owns) void this.#server.shutdown({ graceMs: graceMs.max }).then(() => this.#checkClosed());
    }
    this.#checkClosed();
    return this;
  }

  /** Destroys all open connections. */
  destroyConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    await new Promise<void>((resolve) => {
      this.once('close', resolve);
      this.close();
    });
  }

  #checkClosed(): void {
    if (!this.#closing || this.#closed || this.#sockets.size > 0) return;
    this.#closed = true;
    process.nextTick(() => this.emit('close'));
  }

  #accept(segments: AsyncIterable<Segment>, context: HandlerContext): AsyncIterable<OutgoingSegment> {
    if (this.#closing) {
      throw new RpcError(Status.UNAVAILABLE, `${context.method}: this server accepts no more sockets`, {
        processed: 'no',
      });
    }
    context.header.set(acceptKey, '1');
    context.sendHeader();
    const owner: LineOwner = { cancels: false, onOver: () => undefined };
    const line = new Line(owner, true);
    const { pauseOnConnect = false, ...options } = this.#options;
    const onDestroyed = (): void => {
      if (this.#sockets.delete(socket)) this.#checkClosed();
    };
    const socket: Socket = new Socket(line, { onDestroyed }, undefined, options);
    line.start(segments[Symbol.asyncIterator]());
    if (this.maxConnections !== undefined && this.#sockets.size >= this.maxConnections) {
      socket.destroy();
      this.emit('drop');
      return line.outlet;
    }
    this.#sockets.add(socket);
    socketControl().begin(
      socket,
      { remote: endpointOf(context.peer.address), local: noEndpoint, peer: context.peer },
      pauseOnConnect,
    );
    this.emit('connection', socket);
    return line.outlet;
  }
}

/**
 * Accepts sockets on all addresses of `server`, beside its services. `listener` is added for `connection`.
 * The options of the server apply; `authorize` gets the method `rdma_rpc.Sockets/Connect`. Throws when the
 * server already has sockets.
 */
export function addSockets(
  server: Server,
  listener?: (socket: Socket) => void,
  options: SocketServerOptions = {},
): SocketServer {
  checkNames('addSockets', options, socketNames);
  const sockets = new SocketServer(server, options, false);
  if (listener !== undefined) sockets.on('connection', listener);
  return sockets;
}

/**
 * Creates a server of sockets with its own addresses. `listener` is added for `connection`. The server
 * accepts connections after `listen()`. Throws for unknown options and invalid values.
 */
export function createServer(
  options: CreateServerOptions | ((socket: Socket) => void) = {},
  listener?: (socket: Socket) => void,
): SocketServer {
  if (typeof options === 'function') return createServer({}, options);
  checkNames('createServer', options, [...socketNames, 'server']);
  const { server, ...others } = options;
  const rpc = createRpcServer({ streamsMax: socketsPerSession, ...server });
  const sockets = new SocketServer(rpc, others, true);
  if (listener !== undefined) sockets.on('connection', listener);
  return sockets;
}
