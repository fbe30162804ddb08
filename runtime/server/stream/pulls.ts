/**
 * The PULLs (requests for a part) that a stream on the server has received and not answered yet. A
 * ServerStream owns this object and uses it on its JS thread.
 */
import { streamParts } from '../../limits.ts';

export class Pulls {
  /** Sequence number of the part to send next. */
  next = 0;
  /** Handles by sequence number. */
  readonly #handles: (number | undefined)[] = new Array<undefined>(streamParts).fill(undefined);
  /** Sequence number of the part that the client's application waits for. */
  #awaited = -1;

  /** Adds a PULL. Returns false when the part was already requested, or is requested too early. */
  add(sequence: number, handle: number, awaited: boolean): boolean {
    const place = sequence % streamParts;
    if ((sequence - this.next) >>> 0 >= streamParts || this.#handles[place] !== undefined) return false;
    this.#handles[place] = handle;
    if (awaited) this.#awaited = sequence;
    return true;
  }

  /** Returns the handle of the PULL for a part, or undefined when the part was not requested yet. */
  handleOf(sequence: number): number | undefined {
    return this.#handles[sequence % streamParts];
  }

  isAwaited(sequence: number): boolean {
    return this.#awaited === sequence;
  }

  /** Runs when the part has been sent. */
  done(sequence: number): void {
    this.#handles[sequence % streamParts] = undefined;
    this.next = (sequence + 1) >>> 0;
  }

  /** Removes and returns the waiting PULLs, in order, when the stream has ended. */
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
