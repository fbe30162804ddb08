/**
 * One connection of a program through a carrier. Bytes that the program sends go into frames, and bytes of
 * received frames go to the program. Both ends of the tunnel create conduits, on the JS thread.
 *
 * Each direction has a window. The sender pauses its program when it has sent `windowBytes` that the other
 * side's program has not read yet. Therefore a slow reader stops only its own writer, and no other
 * connection.
 */
import type { Socket } from 'node:net';
import { readError } from '../../runtime/socket/errors.ts';
import type { RelayCounts } from './counts.ts';
import { Kind } from './frames.ts';
import type { HeldMessage } from './held-message.ts';
import { endedByReset, reset } from './program-side.ts';

/** Number of bytes that the other side may send before this side's program has read them. */
export const windowBytes = 512 * 1024;
/** A sender may exceed its window by the bytes of its last read, which are at most 64 KiB with Node. */
const receivedMax = 2 * windowBytes;

export type Report = (error: Error, wasConnecting: boolean) => void;

/** The carrier, as its conduits see it. */
export interface ConduitOwner {
  send(kind: number, connection: number, value?: number): void;
  sendData(connection: number, bytes: Uint8Array): void;
  /** Runs when the program's socket is closed; the conduit sends nothing after that. */
  onClosed(connection: number): void;
}

export class Conduit {
  readonly #number: number;
  readonly #program: Socket;
  readonly #owner: ConduitOwner;
  readonly #counts: RelayCounts;
  readonly #report: Report;
  /** Bytes that may still be sent; 0 or less when the window is full. */
  #credit = windowBytes;
  /** Bytes that have arrived and that no window frame has confirmed yet. */
  #received = 0;
  /** The part of `#received` that is still in the buffer of the program's socket. */
  #buffered = 0;
  /** The part of `#received` that the program has taken. */
  #taken = 0;
  /** Whether the ends of both directions have passed through the tunnel. */
  #finArrived = false;
  #finSent = false;
  #connecting: boolean;
  #failed = false;
  /** True when the other side has reset the connection, or the whole stream has ended. */
  #cut = false;

  constructor(number: number, program: Socket, owner: ConduitOwner, counts: RelayCounts, report: Report) {
    this.#number = number;
    this.#program = program;
    this.#owner = owner;
    this.#counts = counts;
    this.#report = report;
    this.#connecting = program.connecting;
    ++counts.open;
    ++counts.accepted;
    if (this.#connecting)
      program.once('connect', () => {
        this.#connecting = false;
      });
    program.on('data', this.#onProgramData);
    program.on('end', this.#onProgramEnd);
    program.on('drain', this.#onDrain);
    program.on('error', (error: Error) => this.#fail(error, this.#connecting));
    program.once('close', this.#onProgramClose);
  }

  // --- frames

  /**
   * Gives data to the program. `held` is the message in whose memory it lies, if that memory must be
   * released. Returns false when the other side has sent more than its window allows.
   */
  onData(bytes: Buffer, held: HeldMessage | undefined): boolean {
    const { byteLength } = bytes;
    this.#received += byteLength;
    if (this.#received > receivedMax) return false;
    if (!this.#program.writable) return true;
    this.#counts.receivedBytes += byteLength;
    held?.hold();
    if (this.#program.write(bytes, held?.done)) this.#take(byteLength);
    else this.#buffered += byteLength;
    return true;
  }

  /**
   * Runs when the other side's program has read this number of bytes. Returns false when the number is larger
   * than the number of bytes sent. Otherwise a false report could make this side buffer any number of bytes.
   */
  onWindow(bytes: number): boolean {
    const before = this.#credit;
    this.#credit += bytes;
    if (this.#credit > windowBytes) return false;
    if (before <= 0 && this.#credit > 0) this.#program.resume();
    return true;
  }

  onFin(): void {
    this.#finArrived = true;
    this.#program.end();
  }

  onReset(): void {
    this.lose(readError(undefined), false);
  }

  /**
   * True when neither side has anything more to send. The program may still have to read its last bytes, but
   * this does not need the other side.
   */
  get isComplete(): boolean {
    return this.#finArrived && this.#finSent;
  }

  /** Ends a lost connection, whose program gets a reset. */
  lose(error: Error, wasConnecting: boolean): void {
    this.#cut = true;
    this.#fail(error, wasConnecting);
    reset(this.#program);
  }

  // --- the program

  readonly #onProgramData = (bytes: Buffer): void => {
    const { byteLength } = bytes;
    this.#counts.sentBytes += byteLength;
    this.#owner.sendData(this.#number, bytes);
    this.#credit -= byteLength;
    if (this.#credit <= 0) this.#program.pause();
  };

  readonly #onProgramEnd = (): void => {
    if (endedByReset(this.#program)) {
      this.#program.destroy(readError(undefined));
      return;
    }
    this.#finSent = true;
    this.#owner.send(Kind.fin, this.#number);
  };

  readonly #onDrain = (): void => {
    const bytes = this.#buffered;
    this.#buffered = 0;
    this.#take(bytes);
  };

  readonly #onProgramClose = (): void => {
    --this.#counts.open;
    const { readableEnded, errored } = this.#program;
    if (!this.#cut && (!readableEnded || errored !== null)) this.#owner.send(Kind.reset, this.#number);
    this.#owner.onClosed(this.#number);
  };

  #take(bytes: number): void {
    this.#taken += bytes;
    if (this.#taken < windowBytes / 2) return;
    this.#owner.send(Kind.window, this.#number, this.#taken);
    this.#received -= this.#taken;
    this.#taken = 0;
  }

  /** Counts and reports the first error. */
  #fail(error: Error, wasConnecting: boolean): void {
    if (this.#failed) return;
    this.#failed = true;
    if (wasConnecting) ++this.#counts.refused;
    else ++this.#counts.broken;
    this.#report(error, wasConnecting);
  }
}
