/**
 * What a call has beyond a request and a deadline: signals, metadata, buffer for the response, callbacks for
 * header and trailer. Made only for calls that ask for one of them. It listens to its signals itself, so that
 * no closure is needed.
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

/** Where a call is just now: in a queue, or on a session. */
export interface CallPlace {
  /** A signal of the call has fired. `reason`: Reason.cancelled or Reason.deadline. */
  cancelCall(token: number, reason: number): void;
}

/** What a caller may have asked for. */
export interface CallWishes {
  readonly signal?: AbortSignal | undefined;
  /** Of the call that this one is made for. */
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
  /** Wire form. */
  readonly metadata: Uint8Array | undefined;
  readonly into: BlockLease | undefined;
  /** A response that does not fit `into` may have other memory. */
  readonly mayOverflow: boolean;
  readonly onHeader: ((header: Metadata) => void) | undefined;
  readonly onTrailer: ((trailer: Metadata) => void) | undefined;
  /** Waits for a connection, however many attempts that takes. Undefined: as its method does. */
  readonly waitForReady: boolean | undefined;
  /** Reason of the signal that gave the call up. */
  cause: unknown;
  /** It has been made again already, since no handler had seen it. */
  retried = false;
  /**
   * The caller's async context, in which the callbacks run. Undefined when there are none, and for those of
   * this package.
   */
  readonly #scope: Scope | undefined;
  #place: CallPlace | undefined;
  #token = 0;
  /** To `signal`; one of AbortSignal.timeout() is listened to some ms later. */
  #listening = false;

  /** `own`: the callbacks are those of this package, and run in no context of the caller's. */
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

  /** The signal that has fired, if one has. */
  get abortedBy(): AbortSignal | undefined {
    if (this.signal?.aborted) return this.signal;
    return this.parent?.aborted ? this.parent : undefined;
  }

  /** Somebody wants to hear of the response's metadata. */
  get listens(): boolean {
    return this.onHeader !== undefined || this.onTrailer !== undefined;
  }

  /** Hands over what a response has brought. What a callback throws comes out. */
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

  /** From now on the signal cancels `token` of `place`: at once, if it has fired. */
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
   * A getter of the request may have fired it while nobody listened, or while the call was on its way from
   * one place to the next.
   */
  #look(): void {
    try {
      if (this.abortedBy !== undefined) this.onAbort();
    } catch (error) {
      this.#fail(error);
    }
  }

  /**
   * A signal of another library. The call is under way, so it ends as one that has been given up; others must
   * not hear of it.
   */
  #fail(error: unknown): void {
    this.cause = error;
    this.#place?.cancelCall(this.#token, Reason.cancelled);
  }

  listenNow(): void {
    if (this.#place === undefined || this.#listening || this.signal === undefined) return;
    this.#listening = true;
    listen(this.signal, this);
    this.#look();
  }

  /** The call has settled. */
  unwatch(): void {
    if (this.#place === undefined) return;
    this.#place = undefined;
    try {
      if (this.signal !== undefined && this.#listening) unlisten(this.signal, this);
      if (this.parent !== undefined) unlisten(this.parent, this);
    } catch {
      // Another library's. The call has its end, and who settles it has others to settle.
    }
    this.#listening = false;
  }

  onAbort(): void {
    this.cause = this.abortedBy?.reason;
    this.#place?.cancelCall(this.#token, reasonOf(this.cause));
  }
}
