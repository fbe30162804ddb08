/**
 * Credentials of a client. They are metadata that is sent once per connection for the server's
 * `authenticate`, or with each call for its handlers. They come from functions of the application and are
 * cached until shortly before they expire. A channel uses this file.
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
  /**
   * Time of expiry in ms on the clock of `Date.now()`. The credentials are reused until 30 s before this
   * time. Default: the function is called each time.
   */
  expiresAtMs?: number;
}
/**
 * Returns credentials. Calls and connections share the result, so the function runs outside of any caller's
 * async context, and no `AsyncLocalStorage` has a store in it. Values that differ from user to user must be
 * given by `metadata` of the call or by an interceptor.
 */
export type CredentialsSource = () => GivenCredentials | Promise<GivenCredentials>;

/** Option `credentials` of a channel. */
export interface Credentials {
  /** The client sends these credentials with each connection, for the server's `authenticate`. */
  session?: CredentialsSource;
  /** The client sends these credentials as metadata with each call. */
  call?: CredentialsSource;
  /** Whether to send the credentials over connections that others may be able to read. Default: false. */
  unsealed?: boolean;
}

/**
 * Rejects when the source takes too long. Later callers share the answer, so a source that hangs would block
 * all of them.
 */
function inTime(asked: Promise<Metadata>): Promise<Metadata> {
  return new Promise((resolve, reject) => {
    const text = `the credentials function of the channel has returned nothing within ${credentialsMs} ms`;
    const late = (): void => reject(new RpcError(Status.UNAVAILABLE, text, { processed: 'no' }));
    const timer = setTimeout(late, credentialsMs).unref();
    asked.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/**
 * A source with its cached result. Callers that need the credentials while a request to the source is running
 * share its answer.
 */
export class KeptCredentials {
  readonly #source: CredentialsSource;
  #kept: Metadata | undefined;
  #until = 0;
  #asking: Promise<Metadata> | undefined;

  constructor(source: CredentialsSource) {
    this.#source = source;
  }

  /**
   * Resolves with the credentials. Rejects with UNAUTHENTICATED when the source fails, and with UNAVAILABLE
   * when it hangs.
   */
  async metadata(): Promise<Metadata> {
    if (this.#kept !== undefined && Date.now() < this.#until) return this.#kept;
    this.#asking ??= inTime(inRoot(this.#ask, this)).finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #ask(): Promise<Metadata> {
    try {
      // The source is called after an await, so that a synchronous error becomes a rejection.
      await undefined;
      const { metadata, expiresAtMs } = await this.#source();
      // Check the names of the result. Otherwise a token under a wrong name would silently not be sent.
      if (metadata === undefined)
        throw new TypeError('metadata is missing; return { metadata, expiresAtMs }');
      const made = new Metadata(metadata);
      encodeMetadata(made);
      this.#kept = made;
      this.#until = expiresAtMs === undefined ? 0 : expiresAtMs - credentialsMarginMs;
      return made;
    } catch (error) {
      const text = `the credentials function of the channel failed: ${textOf(error)}`;
      throw new RpcError(Status.UNAUTHENTICATED, text, { processed: 'no', cause: error });
    }
  }
}

/**
 * Returns an interceptor that adds the credentials to each call. Metadata of the call with the same name
 * takes precedence.
 */
export function callCredentials(source: CredentialsSource): Interceptor {
  const kept = new KeptCredentials(source);
  return (next) => async (request) => {
    for (const [name, value] of await kept.metadata()) request.metadata.append(name, value);
    return next(request);
  };
}
