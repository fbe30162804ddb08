/**
 * The stream between the two ends of a tunnel, with the connections that it carries. The listening end opens
 * the stream, and opens connections on it. The serving end accepts both. A Carrier is also the iterable whose
 * messages the stream sends. It runs on the JS thread.
 */
import type { Socket } from 'node:net';
import { leaseOf } from '../../runtime/core/lease.ts';
import { Conduit, type ConduitOwner, type Report } from './conduit.ts';
import type { RelayCounts } from './counts.ts';
import { type FrameHandler, FrameReader, FrameWriter, Kind } from './frames.ts';
import type { Frames, FramesInit } from './gen/rdma_rpc/tunnel.rdma.ts';
import { HeldMessage } from './held-message.ts';

/**
 * Maximum number of connections of one carrier. Further connections are reset, so that a hostile peer cannot
 * exhaust memory.
 */
const connectionsMax = 32_768;
/** Frames have 32 bits for the number of a connection. */
export const numberMax = 0xffff_ffff;

export interface CarrierOptions {
  readonly counts: RelayCounts;
  readonly report: Report;
  /** Connects to the program for a new connection of the other side. Only the serving end has it. */
  readonly accept?: () => Socket;
  /**
   * Runs when this carrier takes no further connections, because the other side accepts no more, or because
   * all numbers have been used. The next connection then needs another carrier.
   */
  readonly onAway?: () => void;
  /**
   * Runs when the stream, and therefore all its connections, have ended. `error` is undefined when there was
   * no error.
   */
  readonly onOver: (error: unknown) => void;
  /** The number before that of the first connection, for tests. Default 0. */
  readonly lastNumber?: number;
}

type Next = IteratorResult<FramesInit, undefined>;
const done: Next = Object.freeze({ value: undefined, done: true });

export class Carrier implements ConduitOwner, FrameHandler, AsyncIterableIterator<FramesInit> {
  readonly #options: CarrierOptions;
  readonly #writer = new FrameWriter();
  readonly #reader = new FrameReader(this);
  readonly #conduits = new Map<number, Conduit>();
  #lastNumber: number;
  /** The message that is being read, if it lies in leased memory. */
  #held: HeldMessage | undefined;
  /** Settles the `next()` that waits for frames. */
  #waiting: ((result: Next) => void) | undefined;
  #scheduled = false;
  #draining = false;
  /** True when the stream takes no more messages. Messages of the other side may still come. */
  #stopped = false;
  #over = false;
  /** True when the other side has accepted the stream. */
  open = false;

  constructor(options: CarrierOptions) {
    this.#options = options;
    this.#lastNumber = options.lastNumber ?? 0;
  }

  /** Number of connections. */
  get size(): number {
    return this.#conduits.size;
  }

  /** Reads frames until the stream ends. */
  async read(source: AsyncIterable<Frames>): Promise<void> {
    try {
      for await (const frames of source) this.#readMessage(frames);
      this.#end(undefined);
    } catch (error) {
      this.#end(error);
    }
  }

  #readMessage(frames: Frames): void {
    // A server of an earlier release sends an empty header, so its clients get no header event.
    this.open = true;
    const lease = leaseOf(frames);
    if (lease === undefined) {
      this.#reader.read(frames.parts);
      return;
    }
    const held = new HeldMessage(lease);
    this.#held = held;
    try {
      this.#reader.read(frames.parts);
    } finally {
      this.#held = undefined;
      held.done();
    }
  }

  /** Carries a new connection of `program`. */
  carry(program: Socket): void {
    const number = ++this.#lastNumber;
    this.send(Kind.open, number);
    this.#add(number, program);
    // A number is never used twice, because a connection that has ended on this side may still exist on the
    // other side.
    if (number === numberMax) {
      this.#options.onAway?.();
      this.drain();
    }
  }

  /** Accepts no further connections, and ends the stream when the last connection has ended. */
  drain(): void {
    if (this.#draining) return;
    this.#draining = true;
    this.send(Kind.away, 0);
    this.#endWhenDrained();
  }

  // --- outgoing frames

  send(kind: number, connection: number, value = 0): void {
    if (this.#stopped) return;
    this.#writer.add(kind, connection, value);
    this.#schedule();
  }

  sendData(connection: number, bytes: Uint8Array): void {
    if (this.#stopped) return;
    this.#writer.data(connection, bytes);
    this.#schedule();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Next> {
    // Messages that are left from the last flush are sent at once.
    if (!this.#writer.isEmpty && (!this.#scheduled || this.#stopped)) return Promise.resolve(this.#take());
    if (this.#stopped) return Promise.resolve(done);
    return new Promise((resolve) => {
      this.#waiting = resolve;
      this.#endWhenDrained();
    });
  }

  /**
   * The stream takes no more messages. Connections go on, because the last messages of the other side, with
   * the ends of connections, may still have to be read.
   */
  return(): Promise<Next> {
    this.#stop();
    this.#options.onAway?.();
    return Promise.resolve(done);
  }

  #stop(): void {
    this.#stopped = true;
    this.#waiting?.(done);
    this.#waiting = undefined;
  }

  /** Sends at the end of the event-loop iteration, when all readable sockets have been read. */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(this.#flush);
  }

  readonly #flush = (): void => {
    this.#scheduled = false;
    const resolve = this.#waiting;
    if (resolve === undefined || this.#writer.isEmpty) return;
    this.#waiting = undefined;
    resolve(this.#take());
  };

  #take(): Next {
    return { value: { parts: this.#writer.take() }, done: false };
  }

  // --- incoming frames

  onData(connection: number, bytes: Buffer): void {
    // Data may still arrive for a connection that has already ended on this side.
    const conduit = this.#conduits.get(connection);
    if (conduit?.onData(bytes, this.#held) === false)
      throw new Error('the other end has sent more than it may');
  }

  onFrame(kind: number, connection: number, value: number): void {
    switch (kind) {
      case Kind.open:
        this.#accept(connection);
        break;
      case Kind.fin:
        this.#conduits.get(connection)?.onFin();
        break;
      case Kind.reset:
        this.#conduits.get(connection)?.onReset();
        break;
      case Kind.window:
        if (this.#conduits.get(connection)?.onWindow(value) === false)
          throw new Error('the other end has confirmed more than it was sent');
        break;
      case Kind.away:
        this.#options.onAway?.();
        break;
      default:
        throw new Error(`the other end has sent a frame of kind ${kind}`);
    }
  }

  #accept(number: number): void {
    const { accept } = this.#options;
    if (accept === undefined || this.#conduits.has(number))
      throw new Error(`the other end has opened connection ${number}, which it may not`);
    if (this.#draining || this.#conduits.size >= connectionsMax) this.send(Kind.reset, number);
    else this.#add(number, accept());
  }

  #add(number: number, program: Socket): void {
    const { counts, report } = this.#options;
    this.#conduits.set(number, new Conduit(number, program, this, counts, report));
  }

  // --- the end

  onClosed(connection: number): void {
    this.#conduits.delete(connection);
    this.#endWhenDrained();
  }

  #endWhenDrained(): void {
    if (!this.#draining || this.#conduits.size > 0 || !this.#writer.isEmpty) return;
    const resolve = this.#waiting;
    this.#waiting = undefined;
    resolve?.(done);
  }

  #end(error: unknown): void {
    if (this.#over) return;
    this.#over = true;
    this.#stop();
    const cause = error instanceof Error ? error : new Error('the other end of the tunnel is gone');
    for (const conduit of this.#conduits.values()) if (!conduit.isComplete) conduit.lose(cause, !this.open);
    this.#options.onOver(error);
  }
}
