/**
 * The optional parts of a call: signals, metadata, a buffer for the response, callbacks for header and
 * trailer. A session creates this object only for calls that use one of these parts. The object itself
 * listens to the signals, so that no closure is needed.
 */

import { type Abortable, listen, unlisten } from '../../core/abort-listeners.ts';
import { reasonOf } from '../../core/errors/failure.ts';
import { heard } from '../../core/foreign.ts';
import type { BlockLease } from '../../core/lease.ts';
import type { Metadata } from '../../core/metadata.ts';
import type { ResponseMetadata } from '../../core/metadata-wire.ts';
import { Scope } from '../../core/scopes.ts';
import { isTimeoutSignal, type LateListener, listenLater } from '../../core/timeout-signals.ts';
import { Reason } from '../../native/native.ts';

/** The current owner of a call: a queue or a session. */
export interface CallPlace {
  /** Runs when a signal of the call was aborted. `reason` is Reason.cancelled or Reason.deadline. */
  cancelCall(token: number, reason: number): void;
}

/** The options that a caller may have given. */
export interface CallWishes {
  readonly signal?: AbortSignal | undefined;
  /** Signal of the handler's context for which this call is made. */
  readonly parent?: AbortSignal | undefined;
  readonly into?: BlockLease | undefined;
  readonly intoOverflow?: 'error' | 'lease' | undefined;
  readonly onHeader?: ((header: Metadata) => void) | undefined;
  readonly onTrailer?: ((trailer: Metadata) => void) | undefined;
  readonly waitForReady?: boolean | undefined;
}

export class CallExtras implements Abortable, LateListener {
  readonly signal: AbortSignal | undefined;
  readonly parent: AbortSignal | undefined;
  /** Metadata in wire form. */
  readonly metadata: Uint8Array | undefined;
  readonly into: BlockLease | undefined;
  /** True when a response that does not fit `into` may use other memory. */
  readonly mayOverflow: boolean;
  readonly onHeader: ((header: Metadata) => void) | undefined;
  readonly onTrailer: ((trailer: Metadata) => void) | undefined;
  /**
   * Whether the call waits for a connection even when connection attempts fail. Default: the setting of the
   * method.
   */
  readonly waitForReady: boolean | undefined;
  /** The reason of the signal that has cancelled the call. */
  cause: unknown;
  /** True when the call has already been sent again because no handler had seen it. */
  retried = false;
  /**
   * The caller's async context, in which the callbacks run. It is undefined when the call has no callbacks or
   * only callbacks of this package.
   */
  readonly #scope: Scope | undefined;
  #place: CallPlace | undefined;
  #token = 0;
  /**
   * True while this object listens to `signal`. It begins to listen to a signal of AbortSignal.timeout() a
   * few milliseconds later.
   */
  #listening = false;

  /** With `own`, the callbacks belong to this package and do not need the async context of the caller. */
  constructor(wishes: CallWishes, metadata: Uint8Array | undefined, own = false) {
    this.signal = wishes.signal;
    this.parent = wishes.parent;
    this.metadata = metadata;
    this.into = wishes.into;
    this.mayOverflow = wishes.intoOverflow === 'lease';
    this.onHeader = wishes.onHeader;
    this.onTrailer = wishes.onTrailer;
    this.waitForReady = wishes.waitForReady;
    if (!own && this.listens) this.#scope = new Scope();
  }

  /** The aborted signal, if any. */
  get abortedBy(): AbortSignal | undefined {
    if (this.signal?.aborted) return this.signal;
    return this.parent?.aborted ? this.parent : undefined;
  }

  /** True when the response's metadata must be passed to a callback. */
  get listens(): boolean {
    return this.onHeader !== undefined || this.onTrailer !== undefined;
  }

  /** Passes header and trailer of a response to the callbacks. Errors of a callback are passed on. */
  tell({ header, trailer }: ResponseMetadata): void {
    if (header !== undefined) this.tellHeader(header);
    if (trailer !== undefined) this.tellTrailer(trailer);
  }

  tellHeader(header: Metadata): void {
    this.#tell('onHeader', this.onHeader, header);
  }

  tellTrailer(trailer: Metadata): void {
    this.#tell('onTrailer', this.onTrailer, trailer);
  }

  #tell(what: string, callback: ((metadata: Metadata) => void) | undefined, metadata: Metadata): void {
    if (callback === undefined) return;
    if (this.#scope === undefined) callback(metadata);
    else heard(what, this.#scope.run(callback, undefined, metadata));
  }

  /**
   * From now on, an abort of the signals cancels the call with `token` in `place`. Cancels it at once if a
   * signal is already aborted.
   */
  watch(place: CallPlace, token: number): void {
    const begins = this.#place === undefined;
    this.#place = place;
    this.#token = token;
    if (begins) this.#listen();
    else this.#look();
  }

  #listen(): void {
    const { signal, parent } = this;
    try {
      if (signal !== undefined && isTimeoutSignal(signal)) listenLater(this);
      else if (signal !== undefined) {
        listen(signal, this);
        this.#listening = true;
      }
      if (parent !== undefined) listen(parent, this);
    } catch (error) {
      this.#fail(error);
      return;
    }
    this.#look();
  }

  /**
   * Cancels the call if a signal is already aborted. A getter of the request may have aborted the signal
   * before this object listened, or while the call passed from one owner to another.
   */
  #look(): void {
    try {
      if (this.abortedBy !== undefined) this.onAbort();
    } catch (error) {
      this.#fail(error);
    }
  }

  /**
   * Ends the call when a signal of another library has thrown. The call is in flight, so it is ended like a
   * cancelled call. Other calls must not be affected.
   */
  #fail(error: unknown): void {
    this.cause = error;
    this.#place?.cancelCall(this.#token, Reason.cancelled);
  }

  listenNow(): void {
    if (this.#place === undefined || this.#listening || this.signal === undefined) return;
    // A signal that has fired needs no listener. Each call would otherwise add one, because a call that
    // waits in a queue ends at once and removes the listener again.
    if (!this.signal.aborted) {
      this.#listening = true;
      listen(this.signal, this);
    }
    this.#look();
  }

  /** Runs when the call has settled. */
  unwatch(): void {
    if (this.#place === undefined) return;
    this.#place = undefined;
    try {
      if (this.signal !== undefined && this.#listening) unlisten(this.signal, this);
      if (this.parent !== undefined) unlisten(this.parent, this);
    } catch {
      // A signal of another library has thrown. The error is ignored, because the call has ended and the
      // caller of this function has other calls to settle.
    }
    this.#listening = false;
  }

  onAbort(): void {
    this.cause = this.abortedBy?.reason;
    this.#place?.cancelCall(this.#token, reasonOf(this.cause));
  }
}
