/** The error class of both sides: callers receive it, and handlers throw it to answer with a status. */

import { brand } from '../../codec/brand.ts';
import type { MessageType } from '../../codec/types.ts';
import { textOf } from '../foreign.ts';
import { Metadata, type MetadataInit } from '../metadata.ts';
import { checkNames } from '../options.ts';
import { errorCode, Status, type StatusCode, type StatusName, statusName } from './status.ts';
import { type ErrorDetail, type ErrorDetailInit, errorDetail } from './status-details.ts';

/**
 * Whether the handler can have run. `no` means that it cannot have run. With `maybe` the request was sent and
 * no answer came. With `yes` the server answered.
 */
export type Processed = 'no' | 'maybe' | 'yes';

export interface RpcErrorOptions {
  /**
   * Messages with further information for programs: `{ type: BadRequest, value: {...} }`. The messages of
   * google.rpc are in `rdma-rpc/details`.
   */
  details?: readonly ErrorDetailInit[] | undefined;
  /** Metadata to send with the error, in any form that `metadata` of a call takes. Default: empty. */
  trailer?: MetadataInit | undefined;
  /** The original error. It is not sent to the peer. */
  cause?: unknown;
  /**
   * Whether the handler can have run. Default `maybe`. This library sets it in its own errors when it knows
   * the answer.
   */
  processed?: Processed | undefined;
}

const optionNames: readonly (keyof RpcErrorOptions)[] = ['details', 'trailer', 'cause', 'processed'];
const processedValues: readonly Processed[] = ['no', 'maybe', 'yes'];
const none: readonly ErrorDetail[] = [];
/** Names of the errors that an AbortSignal throws. */
const abortCodes: Readonly<Record<string, StatusCode>> = {
  AbortError: Status.CANCELLED,
  TimeoutError: Status.DEADLINE_EXCEEDED,
};

/** Limit of the causes that are followed, because a chain of causes may be circular. */
const causesMax = 16;

/**
 * Returns the status code for an abort error, or undefined for any other value. Node's functions throw an
 * AbortError whose cause is the signal's reason, so this function looks at the causes. An RpcError among the
 * causes, as for the signals of handlers, gives the most precise code. A TimeoutError comes second.
 */
export function abortCode(error: unknown): StatusCode | undefined {
  try {
    if (!(error instanceof Error)) return undefined;
    const code = abortCodes[error.name];
    let cause: unknown = error;
    for (let i = 0; code !== undefined && i < causesMax && cause instanceof Error; ++i) {
      if (cause instanceof RpcError) return cause.code;
      if (abortCodes[cause.name] === Status.DEADLINE_EXCEEDED) return Status.DEADLINE_EXCEEDED;
      cause = cause.cause;
    }
    return code;
  } catch {
    return undefined; // a getter of the error has thrown
  }
}

export class RpcError extends Error {
  readonly code: StatusCode;
  /** The name of `code`, for example `NOT_FOUND`. */
  readonly codeName: StatusName;
  /** The message without the code name in front. */
  readonly rawMessage: string;
  /** Metadata that the server sent with the error, or that a handler's error is to send. */
  readonly trailer: Metadata;
  /** The details in encoded form; `findDetails` decodes them. */
  readonly details: readonly ErrorDetail[];
  /**
   * Whether the handler can have run. `no`: the handler has not run, so repeating the call is always safe.
   * `maybe`: no answer has arrived, so the handler may or may not have run. `yes`: the server has answered.
   */
  readonly processed: Processed;

  /**
   * @param code one of {@link Status} except OK; any other number becomes UNKNOWN.
   * @throws TypeError for an unknown option, and CodecError for a detail that cannot be encoded
   */
  constructor(code: StatusCode, message: string, options: RpcErrorOptions = {}) {
    checkNames('new RpcError', options, optionNames);
    const known = errorCode(code);
    super(
      `${statusName(known)}: ${message}`,
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.name = 'RpcError';
    this.code = known;
    this.codeName = statusName(known);
    this.rawMessage = message;
    const { trailer } = options;
    this.trailer = trailer instanceof Metadata ? trailer : new Metadata(trailer ?? undefined);
    this.details = options.details?.map(errorDetail) ?? none;
    this.processed = options.processed ?? 'maybe';
    if (!processedValues.includes(this.processed))
      throw new RangeError(
        `new RpcError: processed: ${String(this.processed)} is not allowed; use one of no, maybe, yes`,
      );
  }

  /** Returns the decoded details of one type. Malformed details are omitted. */
  findDetails<T>(type: MessageType<T, never>): T[] {
    const found: T[] = [];
    for (const detail of this.details) {
      if (detail.type !== type.typeName) continue;
      try {
        found.push(type.decode(detail.value));
      } catch {
        // The sender has another version of the type. The caller does not see such a detail.
      }
    }
    return found;
  }

  /**
   * Returns the object that JSON.stringify writes, for logs. It has no stack and no cause, and details are in
   * base64.
   */
  toJSON(): object {
    const { name, codeName, code, rawMessage, processed, trailer, details } = this;
    return {
      name,
      codeName,
      code,
      message: rawMessage,
      processed,
      trailer: trailer.toJSON(),
      details: details.map(({ type, value }) => ({ type, value: Buffer.from(value).toString('base64') })),
    };
  }

  /**
   * Converts any value that was thrown into an RpcError. Returns an RpcError unchanged. A TimeoutError (of
   * `AbortSignal.timeout`) becomes DEADLINE_EXCEEDED. An AbortError gets the code of an RpcError or
   * TimeoutError among its causes, otherwise CANCELLED. Any other value gets `code`, which is UNKNOWN by
   * default. The new error has the text of the value as its message, and the value as its cause.
   */
  static from(reason: unknown, code: StatusCode = Status.UNKNOWN): RpcError {
    if (reason instanceof RpcError) return reason;
    return new RpcError(abortCode(reason) ?? code, textOf(reason), { cause: reason });
  }

  static {
    brand(RpcError, 'RpcError');
  }
}
