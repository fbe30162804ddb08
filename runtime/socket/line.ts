/**
 * One end of a connection. It does for a socket of this package what the kernel does for a socket of
 * `node:net`. A Line connects a stream, which carries segments, with the socket that an application uses.
 * When the socket is destroyed, the Line continues until both sides have learned of the end. It runs on the
 * JS thread.
 *
 * A stream ends as a whole, but a connection ends one direction at a time. Therefore both directions of the
 * stream stay open until each side has sent a segment with `fin`, which ends its direction of the connection.
 *
 * | event                                   | reaction                                                    |
 * |-----------------------------------------|-------------------------------------------------------------|
 * | data, socket reads                      | gives it to the socket                                      |
 * | data, socket does not read              | keeps this segment, and asks the stream for no further one  |
 * | data, socket destroyed                  | resets the connection                                       |
 * | fin                                     | end of the socket's data; goes on asking, for a reset       |
 * | reset, lost session                     | before fin an error of the socket, later of its next write  |
 * | socket destroyed                        | sends fin; a reset if there is data that it has not read    |
 * | both have sent fin                      | ends the stream                                             |
 */
import { leaseOf } from '../core/lease.ts';
import { finLingerMs, readBytes, resetLingerMs } from './limits.ts';
import { Outlet } from './outlet.ts';
import { OutgoingSegment, type Segment } from './segment.ts';

/** The socket, as its Line sees it. */
export interface LineUser {
  /**
   * Runs when bytes have arrived. Returns whether more bytes may follow. If no more bytes may follow, the
   * socket calls `readStart()` later.
   */
  onData(bytes: Uint8Array): boolean;
  /** Runs when the peer sends no more data. */
  onEnd(): void;
  /**
   * Runs when the connection is lost. `cause` is the error of the stream; undefined when the peer has reset
   * it.
   */
  onLost(cause: unknown): void;
}

/** The creator of a Line, as the Line sees it. */
export interface LineOwner {
  /** This is true when this end can cancel the stream. Only the client's end can do so. */
  readonly cancels: boolean;
  /** Runs when the socket was destroyed while the connection goes on without it. */
  onOrphaned?(): void;
  /**
   * Runs when the connection has ended on both sides. `refused` is true when the peer has not accepted the
   * connection.
   */
  onOver(refused: boolean): void;
}

/** Result of a write: '' for success, otherwise the code of the error, and its cause if it is known. */
export type Written = (code: '' | 'ECONNRESET' | 'EPIPE' | 'ECANCELED', cause?: unknown) => void;

const nothing: Uint8Array[] = [];
const ignore = (): void => undefined;

export class Line {
  /** The segments that the stream sends. */
  readonly outlet: Outlet = new Outlet(() => this.#onGone());
  user: LineUser | undefined;

  readonly #owner: LineOwner;
  #source: AsyncIterator<Segment> | undefined;
  /** True while the socket wants data. */
  #reading = false;
  /** True while a segment was requested from the stream and has not arrived. */
  #asking = false;
  /** Data that has arrived while the socket did not read. */
  #unread: Uint8Array[] = [];
  #finArrived = false;
  /** True when the socket was notified of the end. */
  #ended = false;
  #finSent = false;
  #finTaken = false;
  #resetSent = false;
  /** True when the peer has accepted the connection. */
  #open: boolean;
  /** True when the stream sends nothing more, so that all writes fail. */
  #gone = false;
  /** True when the stream has ended. */
  #over = false;
  /** Error of the stream that was not yet passed to the socket. */
  #lost: { readonly cause: unknown } | undefined;
  #timer: NodeJS.Timeout | undefined;

  /**
   * `open` is true when the peer has already accepted the connection, which is always the case on the
   * accepting side.
   */
  constructor(owner: LineOwner, open: boolean) {
    this.#owner = owner;
    this.#open = open;
  }

  /** Runs when the peer has accepted the connection. */
  onOpen(): void {
    this.#open = true;
  }

  /**
   * Requests the first segment from the stream even before the socket reads, because this request opens a
   * client's stream.
   */
  start(source: AsyncIterator<Segment>): void {
    this.#source = source;
    this.#ask();
  }

  // --- the socket reads

  readStart(): void {
    this.#reading = true;
    this.#deliver();
  }

  readStop(): void {
    this.#reading = false;
  }

  /**
   * Returns bytes to the front of the received data, because the socket does not want them yet. This function
   * must be called within `onData()`.
   */
  putBack(bytes: Uint8Array): void {
    if (bytes.byteLength !== 0) this.#unread.unshift(bytes);
  }

  // --- the socket writes

  /** Sends one segment. `stays` is true when the caller will not change the buffers any more. */
  write(data: Uint8Array[], stays: boolean, onWritten: Written): void {
    if (this.#gone) {
      onWritten(this.#code);
      return;
    }
    const segment = new OutgoingSegment(data, stays);
    this.outlet.push(segment, (taken) =>
      onWritten(taken ? '' : this.#gone ? this.#code : 'ECANCELED', segment.fault),
    );
  }

  /** Sends `fin`. `onSent` is called even if the connection is lost, as Node's shutdown(2) does. */
  shutdown(onSent: () => void): void {
    if (this.#gone) onSent();
    else this.#sendFin(onSent);
  }

  /** Runs when the socket is destroyed. With `reset` the peer gets an error, otherwise an orderly end. */
  destroy(reset: boolean): void {
    if (this.user === undefined) return;
    this.user = undefined;
    this.#reading = false;
    const unread = this.#unread.splice(0);
    if (this.#over) return;
    this.#owner.onOrphaned?.();
    if (reset || unread.length !== 0) {
      this.#reset();
    } else {
      this.outlet.clear();
      if (!this.#finSent) this.#sendFin(ignore);
      if (this.#owner.cancels) this.#cancelIn(finLingerMs);
    }
    this.#ask();
  }

  /** Ends the stream at once, because the connection was not made yet. */
  abandon(): void {
    this.user = undefined;
    this.#cancel();
  }

  // --- the stream

  #ask(): void {
    if (this.#asking || this.#over || this.#source === undefined) return;
    this.#asking = true;
    this.#source.next().then(this.#onSegment, this.#onError);
  }

  readonly #onSegment = (result: IteratorResult<Segment, unknown>): void => {
    this.#asking = false;
    if (result.done === true) {
      this.#end(undefined);
      return;
    }
    const segment = result.value;
    if (this.#lost !== undefined) {
      // Segments after a reset are ignored.
      leaseOf(segment)?.release();
      this.#ask();
      return;
    }
    if (!this.#open) {
      // A server that has not accepted the connection cannot send data, so this is an error.
      leaseOf(segment)?.release();
      this.#cancel();
      return;
    }
    // Data after the end is an error of the peer.
    const isReset = segment.reset || (this.#finArrived && segment.data.length !== 0);
    if (isReset) {
      leaseOf(segment)?.release();
      this.#onReset();
      return;
    }
    for (const bytes of segment.data) if (bytes.byteLength !== 0) this.#unread.push(bytes);
    if (segment.fin) {
      this.#finArrived = true;
      this.#checkBoth();
    }
    if (this.user === undefined) this.#drop(segment);
    this.#deliver();
  };

  readonly #onError = (error: unknown): void => {
    this.#asking = false;
    this.#end(error);
  };

  /** Drops received data, because the socket is gone. */
  #drop(segment: Segment): void {
    leaseOf(segment)?.release();
    if (this.#unread.splice(0).length !== 0 && !this.#resetSent) this.#reset();
  }

  /** Passes data to the socket while it reads, and requests more. */
  #deliver(): void {
    while (this.#reading && this.#unread.length !== 0) {
      const first = this.#unread.shift()!;
      const bytes = first.byteLength > readBytes ? first.subarray(0, readBytes) : first;
      this.putBack(first.subarray(bytes.byteLength));
      // The socket may destroy itself in this callback.
      if (this.user?.onData(bytes) === false) this.#reading = false;
    }
    if (this.#unread.length === 0 && this.#reading && this.user !== undefined) this.#tellEnd(this.user);
    const wants = (this.#reading && this.#unread.length === 0) || this.#ended || this.user === undefined;
    if (wants) this.#ask();
  }

  #tellEnd(user: LineUser): void {
    if (this.#finArrived) {
      if (this.#ended) return;
      this.#ended = true;
      user.onEnd();
    } else if (this.#lost !== undefined) {
      const { cause } = this.#lost;
      this.#lost = undefined;
      this.#ended = true;
      user.onLost(cause);
    }
  }

  /** Ends the stream, because the peer has reset the connection and sends nothing more. */
  #onReset(): void {
    this.#gone = true;
    this.#lost = { cause: undefined };
    this.#deliver();
    this.#closeOutlet();
    this.#ask();
  }

  /** Runs when the stream has ended. `error` is undefined when both sides have ended it. */
  #end(error: unknown): void {
    if (this.#over) return;
    this.#over = true;
    this.#gone = true;
    clearTimeout(this.#timer);
    this.#lost ??= { cause: error };
    const refused = !this.#open && this.user !== undefined;
    if (this.#open) this.#deliver();
    else this.user?.onLost(error);
    this.#closeOutlet();
    this.#owner.onOver(refused);
  }

  /** Runs when the stream sends nothing more; it may still bring segments that arrived before its end. */
  #onGone(): void {
    this.#gone = true;
    this.#closeOutlet();
  }

  /**
   * Fails the waiting writes, but not at once. A socket that reads gets its `end` or its error first, as in
   * Node, where the failure of a write is a later event of the system.
   */
  #closeOutlet(): void {
    setImmediate(() => this.outlet.close());
  }

  get #code(): 'ECONNRESET' | 'EPIPE' {
    return this.#finArrived ? 'EPIPE' : 'ECONNRESET';
  }

  // --- the end

  #sendFin(onSent: () => void): void {
    this.#finSent = true;
    this.outlet.push(new OutgoingSegment(nothing, false, true), () => {
      this.#finTaken = true;
      onSent();
      this.#checkBoth();
    });
  }

  /** When both sides have sent `fin`, the stream can end. */
  #checkBoth(): void {
    if (this.#finTaken && this.#finArrived) this.outlet.end();
  }

  #reset(): void {
    if (this.#resetSent || this.#gone) return;
    this.#resetSent = true;
    this.outlet.clear();
    this.outlet.push(new OutgoingSegment(nothing, false, false, true), ignore);
    this.outlet.end();
    if (this.#owner.cancels) this.#cancelIn(resetLingerMs);
  }

  #cancelIn(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#cancel(), ms).unref();
  }

  #cancel(): void {
    this.#gone = true;
    this.outlet.close();
    const left = this.#source?.return?.();
    left?.then(
      () => this.#end(undefined),
      (error: unknown) => this.#end(error),
    );
  }
}
