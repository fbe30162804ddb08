/**
 * Tokens that a client shows: metadata for the server's `authenticate`, once per connection, or for its
 * handlers, with each call. From functions of the application, kept until shortly before they expire. Used by
 * a channel.
 */

import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import { textOf } from '../core/foreign.ts';
import type { Interceptor } from '../core/interceptor.ts';
import { Metadata, type MetadataInit } from '../core/metadata.ts';
import { encodeMetadata } from '../core/metadata-wire.ts';
import { inRoot } from '../core/scopes.ts';
import { credentialsMarginMs, credentialsMs } from '../limits.ts';

export interface GivenCredentials {
  metadata: MetadataInit;
  /** Until then they are used again, less 30 s; as `Date.now()` counts. Default: asked for each time. */
  expiresAtMs?: number;
}
/**
 * Gets credentials from wherever they are. Calls and connections share what it gives, so it is called for
 * none of them: it sees no store of an `AsyncLocalStorage`. What differs from user to user belongs into
 * `metadata` of the call, or into an interceptor.
 */
export type CredentialsSource = () => GivenCredentials | Promise<GivenCredentials>;

/** Option `credentials` of a channel. */
export interface Credentials {
  /** For the server's `authenticate`: asked for each connection. */
  session?: CredentialsSource;
  /** Metadata of each call. */
  call?: CredentialsSource;
  /** Sends them over wires that others may read, too. Default: false. */
  unsealed?: boolean;
}

/** A source that hangs must not keep those who ask later, since they share its answer. */
function inTime(asked: Promise<Metadata>): Promise<Metadata> {
  return new Promise((resolve, reject) => {
    const text = `the credentials of the channel have not come within ${credentialsMs} ms`;
    const late = (): void => reject(new RpcError(Status.UNAVAILABLE, text, { processed: 'no' }));
    const timer = setTimeout(late, credentialsMs).unref();
    asked.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** One source. Those who ask while it is being asked share the answer. */
export class KeptCredentials {
  readonly #source: CredentialsSource;
  #kept: Metadata | undefined;
  #until = 0;
  #asking: Promise<Metadata> | undefined;

  constructor(source: CredentialsSource) {
    this.#source = source;
  }

  /** Rejects with UNAUTHENTICATED when the source fails, with UNAVAILABLE when it hangs. */
  async metadata(): Promise<Metadata> {
    if (this.#kept !== undefined && Date.now() < this.#until) return this.#kept;
    this.#asking ??= inTime(inRoot(this.#ask, this)).finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #ask(): Promise<Metadata> {
    try {
      // Behind an await: what it throws at once is a rejection like any other.
      await undefined;
      const { metadata, expiresAtMs } = await this.#source();
      // Without this check a token under another name would silently not be sent.
      if (metadata === undefined)
        throw new TypeError('they come as { metadata, expiresAtMs }, and metadata is missing');
      const made = new Metadata(metadata);
      encodeMetadata(made);
      this.#kept = made;
      this.#until = expiresAtMs === undefined ? 0 : expiresAtMs - credentialsMarginMs;
      return made;
    } catch (error) {
      const text = `the credentials of the channel cannot be had: ${textOf(error)}`;
      throw new RpcError(Status.UNAUTHENTICATED, text, { processed: 'no', cause: error });
    }
  }
}

/** Adds them to each call; what a call has given itself under the same name goes first. */
export function callCredentials(source: CredentialsSource): Interceptor {
  const kept = new KeptCredentials(source);
  return (next) => async (request) => {
    for (const [name, value] of await kept.metadata()) request.metadata.append(name, value);
    return next(request);
  };
}
