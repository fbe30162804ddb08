/**
 * One end of a connection: what the kernel is to a socket of `node:net`. It stands between a stream, which
 * brings and takes segments, and a socket, which an application uses, and goes on without the socket until
 * both sides have learned of the end. On the JS thread.
 *
 * A stream ends as a whole, a connection one direction at a time. So both iterables of the stream stay open
 * until each side has sent `fin`, and a direction ends with that segment.
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

/** The socket. */
export interface LineUser {
  /** Bytes have arrived. Returns whether more may follow; otherwise `readStart()` is called later. */
  onData(bytes: Uint8Array): boolean;
  /** The peer sends no more data. */
  onEnd(): void;
  /** The connection is lost. `cause` is the error of the stream; undefined when the peer has reset it. */
  onLost(cause: unknown): void;
}

/** What a Line needs of its creator. */
export interface LineOwner {
  /** True when this end can cancel the stream: that of a client. */
  readonly cancels: boolean;
  /** The socket was destroyed; the connection goes on without it. */
  onOrphaned?(): void;
  /** Nothing is left of the connection. `refused` says that the peer has not accepted it. */
  onOver(refused: boolean): void;
}

/** Result of a write: '' for success, otherwise the code of the error. */
export type Written = (code: '' | 'ECONNRESET' | 'EPIPE' | 'ECANCELED') => void;

const nothing: Uint8Array[] = [];
const ignore = (): void => undefined;

export class Line {
  /** What the stream takes. */
  readonly outlet: Outlet = new Outlet(() => this.#onGone());
  user: LineUser | undefined;

  readonly #owner: LineOwner;
  #source: AsyncIterator<Segment> | undefined;
  /** True while the socket wants data. */
  #reading = false;
  /** True while the stream has been asked for a segment. */
  #asking = false;
  /** Data that has arrived while the socket did not read. */
  #unread: Uint8Array[] = [];
  #finArrived = false;
  /** True when the socket has got the end. */
  #ended = false;
  #finSent = false;
  #finTaken = false;
  #resetSent = false;
  /** True when the peer has accepted the connection. */
  #open: boolean;
  /** True when the stream takes nothing more, so that writing is in vain. */
  #gone = false;
  /** True when the stream has ended. */
  #over = false;
  /** Error of the stream that the socket has not got. */
  #lost: { readonly cause: unknown } | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `open` says that the peer has accepted the connection, as on the side that accepts it. */
  constructor(owner: LineOwner, open: boolean) {
    this.#owner = owner;
    this.#open = open;
  }

  /** The peer has accepted the connection. */
  onOpen(): void {
    this.#open = true;
  }

  /** Begins to ask the stream, also before the socket reads: a client's stream is opened by that. */
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

  /** Takes back bytes that the socket does not want yet, from within `onData()`. */
  putBack(bytes: Uint8Array): void {
    if (bytes.byteLength !== 0) this.#unread.unshift(bytes);
  }

  // --- the socket writes

  /** Sends one segment. `stays` says that nobody changes the buffers any more. */
  write(data: Uint8Array[], stays: boolean, onWritten: Written): void {
    if (this.#gone) {
      onWritten(this.#code);
      return;
    }
    this.outlet.push(new OutgoingSegment(data, stays), (taken) =>
      onWritten(taken ? '' : this.#gone ? this.#code : 'ECANCELED'),
    );
  }

  /** Sends fin. `onSent` is called even if the connection is lost, as for shutdown(2) in Node. */
  shutdown(onSent: () => void): void {
    if (this.#gone) onSent();
    else this.#sendFin(onSent);
  }

  /** The socket goes. With `reset` the peer gets an error, otherwise the end. */
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

  /** Ends the stream at once: the connection was not made yet. */
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
      // Nothing counts behind a reset.
      leaseOf(segment)?.release();
      this.#ask();
      return;
    }
    if (!this.#open) {
      // A server that has not accepted the connection has nothing to say.
      leaseOf(segment)?.release();
      this.#cancel();
      return;
    }
    // Data behind the end is a mistake of the peer.
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

  /** Data for a socket that is gone. */
  #drop(segment: Segment): void {
    leaseOf(segment)?.release();
    if (this.#unread.splice(0).length !== 0 && !this.#resetSent) this.#reset();
  }

  /** Gives the socket what it wants, and asks for more. */
  #deliver(): void {
    while (this.#reading && this.#unread.length !== 0) {
      const first = this.#unread.shift()!;
      const bytes = first.byteLength > readBytes ? first.subarray(0, readBytes) : first;
      this.putBack(first.subarray(bytes.byteLength));
      // The socket may destroy itself in there.
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

  /** The peer has reset the connection: end the stream, which has nothing more to say. */
  #onReset(): void {
    this.#gone = true;
    this.#lost = { cause: undefined };
    this.#deliver();
    this.#closeOutlet();
    this.#ask();
  }

  /** The stream has ended. `error` is undefined when both sides have ended it. */
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

  /** The stream takes nothing more, but may still bring segments that arrived before its end. */
  #onGone(): void {
    this.#gone = true;
    this.#closeOutlet();
  }

  /**
   * Fails the writes that wait, but not at once: a socket that reads has its `end` or its error first, as in
   * Node, where a failed write is another event of the system.
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

  /** When both sides have sent fin, the stream can end. */
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
