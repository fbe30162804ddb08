/**
 * The PULLs of a stream on the server that wait for their parts. Owned by a ServerStream, on its JS thread.
 */
import { streamParts } from '../../limits.ts';

export class Pulls {
  /** The part to send next. */
  next = 0;
  /** By sequence. */
  readonly #handles: (number | undefined)[] = new Array<undefined>(streamParts).fill(undefined);
  /** The one that the client's application waits for. */
  #awaited = -1;

  /** False: it has been asked for already, or too early. */
  add(sequence: number, handle: number, awaited: boolean): boolean {
    const place = sequence % streamParts;
    if ((sequence - this.next) >>> 0 >= streamParts || this.#handles[place] !== undefined) return false;
    this.#handles[place] = handle;
    if (awaited) this.#awaited = sequence;
    return true;
  }

  /** What the part is answered to, undefined as long as nobody has asked for it. */
  handleOf(sequence: number): number | undefined {
    return this.#handles[sequence % streamParts];
  }

  isAwaited(sequence: number): boolean {
    return this.#awaited === sequence;
  }

  /** The part is out. */
  done(sequence: number): void {
    this.#handles[sequence % streamParts] = undefined;
    this.next = (sequence + 1) >>> 0;
  }

  /** The stream is over: those that wait, in order, for the last time. */
  takeAll(): { readonly sequence: number; readonly handle: number }[] {
    const waiting = Array.from({ length: streamParts }, (_, i) => (this.next + i) >>> 0).flatMap(
      (sequence) => {
        const handle = this.handleOf(sequence);
        return handle === undefined ? [] : [{ sequence, handle }];
      },
    );
    this.#handles.fill(undefined);
    return waiting;
  }
}
