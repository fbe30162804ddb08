/**
 * Collects the outcome of a client's stream: the reason of a cancellation, and the server's status, header
 * and trailer. A ClientStream owns this object.
 */

import { failure, responseFault } from '../../core/errors/failure.ts';
import { type Processed, RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import type { Metadata } from '../../core/metadata.ts';
import type { ResponseMetadata } from '../../core/metadata-wire.ts';
import type { CallExtras } from '../session/call-extras.ts';

export class Outcome {
  /** The Reason why the stream was cancelled, or 0 when it was not cancelled. */
  reason = 0;
  /** The error for the application. The first error counts. */
  error: unknown;

  readonly #path: string;
  readonly #extras: CallExtras | undefined;
  #toldHeader = false;
  #trailer: Metadata | undefined;

  constructor(path: string, extras: CallExtras | undefined, error: unknown) {
    this.#path = path;
    this.#extras = extras;
    this.error = error;
  }

  /** Sets the error of a cancelled stream that has no error yet. */
  giveUp(processed: Processed): void {
    if (this.reason !== 0)
      this.error ??= failure(this.reason, this.#path, processed, '', this.#extras?.cause);
  }

  /**
   * Passes the header to the callback once: before or with the first message, or with the end. Throws the
   * errors of the callback.
   */
  tellHeader(metadata: ResponseMetadata | undefined): void {
    const header = metadata?.header;
    if (header === undefined || this.#toldHeader) return;
    this.#toldHeader = true;
    this.#extras?.tellHeader(header);
  }

  /** Takes header and trailer of the response that ends the stream. */
  settle(metadata: ResponseMetadata | undefined): void {
    this.#trailer = metadata?.trailer;
    try {
      this.tellHeader(metadata);
    } catch (cause) {
      this.error ??= responseFault(this.#path, cause);
    }
  }

  /**
   * Returns the error for an application that has reached the end of the stream, or undefined. `complete`
   * says that the application has read the last message.
   */
  end(complete: boolean): unknown {
    if (this.error === undefined && !complete) {
      const text = `${this.#path}: the server ended the stream before its last message`;
      this.error = new RpcError(Status.INTERNAL, text, { processed: 'yes' });
    }
    try {
      if (this.#trailer !== undefined) this.#extras?.tellTrailer(this.#trailer);
    } catch (cause) {
      this.error ??= responseFault(this.#path, cause);
    }
    return this.error;
  }
}
