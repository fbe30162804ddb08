/**
 * A stream of bytes over one reliable queue pair, by the protocol of Valkey over RDMA. Each side registers a
 * buffer and tells the peer its address. The peer WRITEs the stream into the buffer from the beginning to the
 * end. Each part has its length as the immediate. When a buffer is full and has been read, its owner
 * announces it again, and the peer begins anew at its start. Both sides do the same, so client and server
 * share one class.
 */
import { Duplex } from 'node:stream';
import {
  Access,
  type CompletionQueue,
  Completions,
  type MemoryRegion,
  type ProtectionDomain,
  type QueuePair,
  RecvBatch,
  SendBatch,
  SendFlags,
  statusName,
  WcOpcode,
  WcStatus,
} from 'rdma-rpc/verbs';
import { type Control, controlBytes, decodeControl, encodeControl, Opcode } from './control.ts';

/** The size that valkey-server uses. */
const bufferDefault = 1 << 20;
const receivesDefault = 1024;
const keepaliveMs = 3000;
/** One in this number of parts asks for a completion, which frees the queue's entries. */
const signalEvery = 32;
/** Longer parts are cut, because some devices, such as soft-RoCE, support no longer WRITE. */
const partMax = 65_536;
/** Number of slots for control messages that are being sent. */
const controlsMax = 16;
/** The wrId of the parts of the stream. Control messages have the numbers of their slots. */
const partId = 1_000_000;

export interface RdmaStreamOptions {
  readonly bufferBytes?: number;
  /** Number of posted receives. Each part or control message of the peer takes one receive. */
  readonly receives?: number;
}

/** The queue pair of a stream. Its receives must be posted before it is connected. */
export interface RdmaEnd {
  readonly pd: ProtectionDomain;
  readonly cq: CompletionQueue;
  readonly qp: QueuePair;
}

export class RdmaStream extends Duplex {
  readonly #end: RdmaEnd;
  /** Memory for received control messages, followed by memory for control messages that are sent. */
  readonly #controls: MemoryRegion;
  /** The peer WRITEs into `#rx`, and this side sends from `#tx`. */
  readonly #rx: MemoryRegion;
  #tx: MemoryRegion | undefined;
  #rxFilled = 0;
  #rxRead = 0;
  /** The peer's buffer. */
  #remote: { addr: number; key: number; length: number; offset: number } | undefined;
  #parts = 0;
  readonly #freeControls: number[];
  readonly #lateControls: Control[] = [];
  readonly #done = new Completions(64);
  readonly #send = new SendBatch(1);
  readonly #recv = new RecvBatch(1);
  /**
   * The part of the stream that is still to be written, because the peer's buffer or the queue had no room.
   */
  #pending: { chunk: Buffer; callback: (error?: Error | null) => void } | undefined;
  #wantsData = false;
  #isClient = false;
  /** Whether the connection has ended, from either side. */
  #over = false;
  /** Runs when no control message is in flight. */
  #onSent: (() => void) | undefined;
  #keepalive: NodeJS.Timeout | undefined;

  /** Posts the receives. Call `start()` when the queue pair is connected. */
  constructor(
    end: RdmaEnd,
    { bufferBytes = bufferDefault, receives = receivesDefault }: RdmaStreamOptions = {},
  ) {
    super({ allowHalfOpen: false });
    this.#end = end;
    const { pd } = end;
    this.#controls = pd.regMr(pd.allocBuffer((receives + controlsMax) * controlBytes), Access.localWrite);
    this.#rx = pd.regMr(pd.allocBuffer(bufferBytes), Access.localWrite | Access.remoteWrite);
    this.#freeControls = Array.from({ length: controlsMax }, (_, i) => receives + i);
    for (let i = 0; i < receives; ++i) this.#postReceive(i);
  }

  /**
   * Announces this side's buffer to the peer, and begins to read and write. With `isClient` this side is the
   * client, which asks for the features first.
   */
  start(isClient: boolean): void {
    this.#isClient = isClient;
    if (isClient) {
      this.#control({ opcode: Opcode.getServerFeature, select: 0, features: 0n });
      this.#control({ opcode: Opcode.setClientFeature, select: 0, features: 0n });
    }
    this.#tellBuffer();
    this.#keepalive = setInterval(() => this.#control({ opcode: Opcode.keepalive }), keepaliveMs);
    this.#keepalive.unref();
    void this.#run();
  }

  // Client libraries call this method, because they take the stream for a socket.
  setNoDelay(): this {
    return this;
  }
  setKeepAlive(): this {
    return this;
  }
  setTimeout(): this {
    return this;
  }

  override _read(): void {
    this.#wantsData = true;
    this.#deliver();
  }
  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: (error?: Error | null) => void): void {
    this.#pending = { chunk, callback };
    try {
      this.#drain();
    } catch (error) {
      callback(error as Error);
    }
  }
  /** Waits until all parts have been acknowledged, which the completion of a later message shows. */
  override _final(callback: (error?: Error | null) => void): void {
    if (this.#over) {
      callback();
      return;
    }
    this.#onSent = () => {
      callback();
      this.#ended();
    };
    this.#control({ opcode: Opcode.keepalive });
  }
  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    clearInterval(this.#keepalive);
    const { qp } = this.#end;
    for (const each of [qp, this.#controls, this.#rx, this.#tx]) each?.close();
    callback(error);
  }

  async #run(): Promise<void> {
    const { cq } = this.#end;
    try {
      while (!this.#over && !this.destroyed) {
        const count = cq.poll(this.#done);
        for (let i = 0; i < count && !this.#over && !this.destroyed; ++i) this.#take(i);
        if (this.#over || this.destroyed) return;
        if (count === 0) await cq.ready();
        else {
          this.#deliver();
          this.#drain();
        }
      }
    } catch (error) {
      if (!this.destroyed) this.destroy(error as Error);
    }
  }

  #take(i: number): void {
    const done = this.#done;
    const id = done.wrId(i);
    if (done.status(i) !== WcStatus.success) {
      // The peer has gone, as at the end of a TCP connection.
      if (done.status(i) === WcStatus.wrFlushErr || done.status(i) === WcStatus.remAbortErr) this.#ended();
      else this.destroy(new Error(`Valkey over RDMA: ${statusName(done.status(i))}`));
      return;
    }
    const opcode = done.opcode(i);
    if (opcode === WcOpcode.recvRdmaWithImm) {
      const bytes = done.imm(i);
      if (bytes > this.#rx.byteLength - this.#rxFilled)
        throw new Error('the peer has written past the buffer');
      this.#rxFilled += bytes;
      this.#postReceive(id);
    } else if (opcode === WcOpcode.recv) {
      this.#hear(decodeControl(this.#controlAt(id).subarray(0, done.byteLength(i))));
      this.#postReceive(id);
    } else if (opcode === WcOpcode.send) {
      this.#freeControls.push(id);
      if (this.#freeControls.length === controlsMax && this.#lateControls.length === 0) this.#onSent?.();
      const late = this.#lateControls.shift();
      if (late !== undefined) this.#control(late);
    }
  }

  #hear(message: Control): void {
    switch (message.opcode) {
      case Opcode.getServerFeature:
        // The server answers with its features, of which none exist yet.
        if (!this.#isClient) this.#control({ ...message, features: 0n });
        return;
      case Opcode.setClientFeature:
        if (message.features !== 0n) throw new Error('the peer wants features that are unknown here');
        return;
      case Opcode.keepalive:
        return;
      case Opcode.registerXferMemory: {
        const { addr, key, length } = message;
        this.#remote = { addr, key, length, offset: 0 };
        if (this.#tx?.byteLength === length) return;
        const { pd } = this.#end;
        this.#tx?.close();
        this.#tx = pd.regMr(pd.allocBuffer(length), Access.localWrite);
      }
    }
  }

  /** Tells the peer to begin anew at the start of this side's buffer. */
  #tellBuffer(): void {
    this.#rxFilled = 0;
    this.#rxRead = 0;
    const { addr, byteLength: length, rkey: key } = this.#rx;
    this.#control({ opcode: Opcode.registerXferMemory, addr, length, key });
  }

  /** Passes the received bytes to the reader, and reuses the buffer when all of it has been used and read. */
  #deliver(): void {
    if (this.#rxRead < this.#rxFilled && this.#wantsData) {
      // A copy is made, because the peer overwrites the buffer while the reader may still keep the bytes.
      const part = Buffer.from(this.#rx.bytes.slice(this.#rxRead, this.#rxFilled));
      this.#rxRead = this.#rxFilled;
      this.#wantsData = this.push(part);
    }
    if (this.#rxRead === this.#rx.byteLength) this.#tellBuffer();
  }

  /** Writes as much of the pending chunk as the peer's buffer has room for. */
  #drain(): void {
    while (this.#pending !== undefined) {
      const { chunk, callback } = this.#pending;
      const remote = this.#remote;
      if (remote === undefined || remote.offset === remote.length || this.#end.qp.sendRoom < 2) return;
      const bytes = Math.min(chunk.byteLength, remote.length - remote.offset, partMax);
      // The offset in the buffer to send from equals the offset in the peer's buffer. The bytes at this
      // offset are free, because the peer has read the data of the previous round.
      const tx = this.#tx!;
      tx.bytes.set(chunk.subarray(0, bytes), remote.offset);
      const flags = ++this.#parts % signalEvery === 0 ? SendFlags.signaled : 0;
      const batch = this.#send.clear();
      batch.writeWithImm(partId, remote.addr + remote.offset, remote.key, bytes, flags);
      this.#end.qp.post(batch.sge(tx, remote.offset, bytes));
      remote.offset += bytes;
      this.#pending = bytes === chunk.byteLength ? undefined : { chunk: chunk.subarray(bytes), callback };
      if (this.#pending === undefined) callback();
    }
  }

  #control(message: Control): void {
    const place = this.#freeControls.pop();
    if (place === undefined || this.#end.qp.sendRoom === 0) {
      if (place !== undefined) this.#freeControls.push(place);
      this.#lateControls.push(message);
      return;
    }
    encodeControl(this.#controlAt(place), message);
    const batch = this.#send.clear().send(place, SendFlags.signaled);
    this.#end.qp.post(batch.sge(this.#controls, place * controlBytes, controlBytes));
  }
  #controlAt(place: number): Uint8Array {
    return this.#controls.bytes.subarray(place * controlBytes, (place + 1) * controlBytes);
  }
  #postReceive(place: number): void {
    this.#end.qp.postRecv(this.#recv.clear().recv(place, this.#controls, place * controlBytes, controlBytes));
  }

  /** Passes the last received bytes to the reader, which then closes the stream. */
  #ended(): void {
    if (this.#over) return;
    this.#over = true;
    if (this.#rxRead < this.#rxFilled)
      this.push(Buffer.from(this.#rx.bytes.slice(this.#rxRead, this.#rxFilled)));
    this.push(null);
  }
}
