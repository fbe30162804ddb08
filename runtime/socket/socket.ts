/**
 * A socket: the Duplex stream that an application uses, with the events and errors of `node:net`. connect()
 * and servers make sockets. It reads from and writes to a Line (line.ts).
 */
import type { AddressInfo } from 'node:net';
import { Duplex, type DuplexOptions } from 'node:stream';
import type { PeerInfo } from '../core/peer.ts';
import { connectError, nodeError, type Place, readError, writeError } from './errors.ts';
import { IdleTimer } from './idle-timer.ts';
import type { Line, LineUser } from './line.ts';
import { UserBuffer } from './on-read.ts';
import { noEndpoint } from './place.ts';
import { bufferLost, bytesOf, isDetached, type Queued, segmentsOf } from './segments.ts';
import type { SocketEnds, SocketOptions, SocketOwner } from './socket-type.ts';

const noEnds: SocketEnds = { remote: noEndpoint, local: noEndpoint, peer: undefined };

type WriteCallback = (error?: Error | null) => void;
type Waiting = {
  readonly chunks: readonly Uint8Array[];
  readonly bytes: number;
  /** Whether all bytes that the Writable has counted are there. A buffer may have shrunk while it waited. */
  readonly isWhole: boolean;
  readonly callback: WriteCallback;
};

function toBytes(chunk: unknown, encoding: BufferEncoding): Uint8Array {
  return typeof chunk === 'string' ? Buffer.from(chunk, encoding) : (chunk as Uint8Array);
}

/** See writeAfterEnd. */
function endedByPeer(this: Socket, ...args: unknown[]): boolean {
  if (!this.writableEnded) return Duplex.prototype.write.apply(this, args as [unknown, BufferEncoding]);
  const callback = args.find((each) => typeof each === 'function') as WriteCallback | undefined;
  const error = nodeError('EPIPE', 'This socket has been ended by the other party');
  if (callback !== undefined) process.nextTick(callback, error);
  this.destroy(error);
  return false;
}

/** The functions of a socket that connect() and servers use, and that applications do not see. */
interface SocketControl {
  /** Runs when the connection is made. connect() calls this function. */
  connected(socket: Socket, ends: SocketEnds): void;
  /** Begins to read unless `paused` is true. Servers call this function. */
  begin(socket: Socket, ends: SocketEnds, paused: boolean): void;
}

let control: SocketControl;
/** Returns these functions; set when the class is defined. */
export const socketControl = (): SocketControl => control;

export class Socket extends Duplex {
  static {
    control = {
      connected: (socket, ends) => socket.#onConnect(ends),
      begin: (socket, ends, paused) => socket.#begin(ends, paused),
    };
  }

  /** True until the connection is made. */
  connecting: boolean;
  /** Milliseconds of `setTimeout()`; undefined before it is called. */
  timeout: number | undefined;
  /** Bytes received. */
  bytesRead = 0;

  readonly #owner: SocketOwner;
  readonly #stays: boolean;
  readonly #userBuffer: UserBuffer | undefined;
  readonly #idle = new IdleTimer(() => this.emit('timeout'));
  readonly #place: Place | undefined;
  #line: Line | undefined;
  #ends: SocketEnds = noEnds;
  /** Number of bytes of all writes that the Duplex has passed on, including the current write. */
  #dispatched = 0;
  #underWay = 0;
  /** The write that was made before the connection was made. */
  #waiting: Waiting | undefined;
  #hadReset = false;

  /**
   * connect() and servers make sockets. `place` is the address to which the socket is connecting, or
   * undefined when the connection is already made.
   */
  constructor(line: Line, owner: SocketOwner, place: Place | undefined, options: SocketOptions = {}) {
    const { allowHalfOpen = false, onread, writesStay = false, ...others } = options;
    const { highWaterMark, readableHighWaterMark, writableHighWaterMark, signal } = others;
    const duplex: DuplexOptions = {
      allowHalfOpen,
      emitClose: false,
      autoDestroy: true,
      decodeStrings: false,
    };
    if (highWaterMark !== undefined) duplex.highWaterMark = highWaterMark;
    if (readableHighWaterMark !== undefined) duplex.readableHighWaterMark = readableHighWaterMark;
    if (writableHighWaterMark !== undefined) duplex.writableHighWaterMark = writableHighWaterMark;
    if (signal !== undefined) duplex.signal = signal;
    super(duplex);
    this.connecting = place !== undefined;
    this.#place = place;
    this.#line = line;
    this.#owner = owner;
    this.#stays = writesStay;
    if (onread !== undefined) this.#userBuffer = new UserBuffer(onread);
    line.user = this.#user;
    this.on('end', this.#onReadableEnd);
  }

  #begin(ends: SocketEnds, paused: boolean): void {
    this.#ends = ends;
    if (paused) this.pause();
    else this.read(0);
  }

  #onConnect(ends: SocketEnds): void {
    if (this.destroyed || !this.connecting) return;
    this.connecting = false;
    this.#ends = ends;
    this.#idle.touch();
    const waiting = this.#waiting;
    this.#waiting = undefined;
    this.emit('connect');
    this.emit('ready');
    if (waiting !== undefined) this.#send(waiting);
    if (!this.isPaused()) this.read(0);
  }

  // --- the line

  readonly #user: LineUser = {
    onData: (bytes) => this.#onData(bytes),
    onEnd: () => this.#onEnd(),
    onLost: (cause) => this.#onLost(cause),
  };

  #onData(bytes: Uint8Array): boolean {
    if (this.destroyed) return false;
    this.#idle.touch();
    this.bytesRead += bytes.byteLength;
    if (this.#userBuffer !== undefined) return this.#fill(this.#userBuffer, bytes);
    return this.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  }

  #fill(buffer: UserBuffer, bytes: Uint8Array): boolean {
    let rest = bytes;
    while (rest.byteLength !== 0 && !this.destroyed) {
      const filled = buffer.fill(rest);
      rest = filled.rest;
      if (!filled.more) {
        this.#line?.putBack(rest);
        return false;
      }
    }
    return true;
  }

  #onEnd(): void {
    this.#idle.touch();
    if (this.readableEnded) return;
    this.push(null);
    this.read(0);
  }

  #onLost(cause: unknown): void {
    if (this.destroyed) return;
    if (this.connecting && this.#place !== undefined) this.destroy(connectError(this.#place, cause));
    else this.destroy(readError(cause));
  }

  // --- Duplex

  override _read(): void {
    if (this.connecting) this.once('connect', () => this._read());
    else this.#line?.readStart();
  }

  override _write(chunk: unknown, encoding: BufferEncoding, callback: WriteCallback): void {
    this.#write([{ chunk, encoding }], callback);
  }

  override _writev(chunks: readonly Queued[], callback: WriteCallback): void {
    this.#write(chunks, callback);
  }

  override _final(callback: WriteCallback): void {
    if (this.connecting) this.once('connect', () => this._final(callback));
    else if (this.#line === undefined) callback();
    else this.#line.shutdown(() => callback());
  }

  override _destroy(error: Error | null, callback: WriteCallback): void {
    const wasConnecting = this.connecting;
    this.connecting = false;
    this.#idle.stop();
    const line = this.#line;
    this.#line = undefined;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (wasConnecting) line?.abandon();
    else line?.destroy(this.#hadReset);
    // `close` is emitted after the events of the streams, as when the system has closed a socket.
    setImmediate(() => this.emit('close', error !== null));
    callback(error);
    const text = 'Socket closed before the connection was established';
    waiting?.callback(nodeError('ERR_SOCKET_CLOSED_BEFORE_CONNECTION', text));
    this.#owner.onDestroyed?.();
  }

  override pause(): this {
    if (this.#userBuffer !== undefined) this.#line?.readStop();
    return super.pause();
  }

  override resume(): this {
    this.#readOn();
    return super.resume();
  }

  override read(size?: number): unknown {
    this.#readOn();
    return super.read(size);
  }

  /** With the option `onread`, the Duplex does not notice that reading has stopped. */
  #readOn(): void {
    if (this.#userBuffer !== undefined && !this.connecting) this.#line?.readStart();
  }

  #write(queued: readonly Queued[], callback: WriteCallback): void {
    const chunks = queued.map(({ chunk, encoding }) => toBytes(chunk, encoding));
    const bytes = bytesOf(chunks);
    // The Writable has counted these lengths when the application wrote, and it holds no other chunks.
    const length = queued.reduce((sum, { chunk }) => sum + (chunk as { length: number }).length, 0);
    const isWhole = length === this.writableLength;
    this.#dispatched += bytes;
    this.#underWay = bytes;
    const written: WriteCallback = (error) => {
      this.#underWay = 0;
      callback(error);
    };
    const waiting = { chunks, bytes, isWhole, callback: written };
    if (this.connecting) this.#waiting = waiting;
    else this.#send(waiting);
  }

  #send({ chunks, bytes, isWhole, callback }: Waiting): void {
    const line = this.#line;
    if (line === undefined) {
      callback(nodeError('ERR_SOCKET_CLOSED', 'Socket is closed'));
      return;
    }
    this.#idle.touch();
    if (!isWhole || bytesOf(chunks) !== bytes || chunks.some(isDetached)) {
      // The peer must not mistake the part that it has received for the whole.
      this.#hadReset = true;
      callback(bufferLost());
      return;
    }
    const segments = segmentsOf(chunks);
    let left = segments.length;
    if (left === 0) callback();
    for (const data of segments) {
      line.write(data, this.#stays, (code, cause) => {
        this.#idle.touch();
        if (left <= 0) return;
        left = code === '' ? left - 1 : 0;
        if (left === 0) callback(code === '' || this.destroyed ? null : writeError(code, cause));
      });
    }
  }

  readonly #onReadableEnd = (): void => {
    // `write()` then explains that the peer has ended the socket.
    if (!this.allowHalfOpen) this.write = endedByPeer;
  };

  // --- as in node:net

  /** Ends the writable side, and destroys the socket when all data was sent. */
  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }

  /** Destroys the socket and resets the connection, so that the peer gets ECONNRESET. */
  resetAndDestroy(): this {
    if (this.#line === undefined) this.destroy(nodeError('ERR_SOCKET_CLOSED', 'Socket is closed'));
    else if (this.connecting) this.once('connect', () => this.#reset());
    else this.#reset();
    return this;
  }

  #reset(): void {
    this.#hadReset = true;
    this.destroy();
  }

  /**
   * Emits `timeout` after `ms` milliseconds without activity; with 0, never emits it. The timeout does not
   * close the socket. Throws for a negative time.
   */
  setTimeout(ms: number, callback?: () => void): this {
    if (this.destroyed) return this;
    this.#idle.set(ms);
    this.timeout = ms;
    if (callback !== undefined) {
      if (ms === 0) this.off('timeout', callback);
      else this.once('timeout', callback);
    }
    return this;
  }

  /** Has no effect: every session has pings of its own and notices when its peer is gone. */
  setKeepAlive(_enable?: boolean, _initialDelayMs?: number): this {
    return this;
  }

  /**
   * Has no effect: all data that is written in one iteration of the event loop is sent together at its end.
   */
  setNoDelay(_noDelay?: boolean): this {
    return this;
  }

  /** Keeps the process alive while the connection is open. This is the default. Has no effect in servers. */
  ref(): this {
    this.#owner.onRef?.(true);
    return this;
  }

  /**
   * Lets the process end while the connection is open. Has no effect in servers, whose sessions keep the
   * process alive.
   */
  unref(): this {
    this.#owner.onRef?.(false);
    return this;
  }

  /** Number of bytes that were written, including queued bytes. */
  get bytesWritten(): number {
    return this.#dispatched + Math.max(0, this.writableLength - this.#underWay);
  }

  get pending(): boolean {
    return this.#line === undefined || this.connecting;
  }

  get bufferSize(): number {
    return this.writableLength;
  }

  get readyState(): 'opening' | 'open' | 'readOnly' | 'writeOnly' | 'closed' {
    if (this.connecting) return 'opening';
    if (this.readable) return this.writable ? 'open' : 'readOnly';
    return this.writable ? 'writeOnly' : 'closed';
  }

  /**
   * The other side: its verified identity, and the facts that it claims about itself. It is undefined before
   * the connection is made.
   */
  get peer(): PeerInfo | undefined {
    return this.#ends.peer;
  }

  get remoteAddress(): string | undefined {
    return this.#ends.remote.address;
  }

  get remotePort(): number | undefined {
    return this.#ends.remote.port;
  }

  get remoteFamily(): string | undefined {
    return this.#ends.remote.family;
  }

  get localAddress(): string | undefined {
    return this.#ends.local.address;
  }

  get localPort(): number | undefined {
    return this.#ends.local.port;
  }

  get localFamily(): string | undefined {
    return this.#ends.local.family;
  }

  /** Address of this side; an empty object when the connection has none, as with unix sockets. */
  address(): AddressInfo | Record<string, never> {
    const { address, port, family } = this.#ends.local;
    return address === undefined || port === undefined ? {} : { address, port, family: family ?? '' };
  }
}
