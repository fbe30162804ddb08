/**
 * What a call has beyond a request and a deadline: signal, metadata, buffer for the response, trailer callback. Made only for calls
 * that ask for one of them. It is the listener of its signal, so that no closure is needed.
 */
import type { BlockLease } from './lease.ts';
import type { Metadata } from './metadata.ts';

/** Where a call is just now: in a queue, or on a session. */
export interface CallPlace {
  /** The call's signal has fired. */
  cancelCall(token: number): void;
}

export class CallExtras {
  readonly signal: AbortSignal | undefined;
  /** Wire form. */
  readonly metadata: Uint8Array | undefined;
  readonly into: BlockLease | undefined;
  readonly onTrailer: ((trailer: Metadata) => void) | undefined;
  #place: CallPlace | undefined;
  #token = 0;

  constructor(
    signal: AbortSignal | undefined,
    metadata: Uint8Array | undefined,
    into: BlockLease | undefined,
    onTrailer: ((trailer: Metadata) => void) | undefined,
  ) {
    this.signal = signal;
    this.metadata = metadata;
    this.into = into;
    this.onTrailer = onTrailer;
  }

  /** From now on the signal cancels `token` of `place`. */
  watch(place: CallPlace, token: number): void {
    if (this.#place === undefined) this.signal?.addEventListener('abort', this);
    this.#place = place;
    this.#token = token;
  }

  /** The call has settled. */
  unwatch(): void {
    if (this.#place === undefined) return;
    this.#place = undefined;
    this.signal?.removeEventListener('abort', this);
  }

  handleEvent(): void {
    this.#place?.cancelCall(this.#token);
  }
}
