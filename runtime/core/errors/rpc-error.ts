/** The error class of both sides: thrown to callers, and thrown by handlers to answer with a status. */

import { brand } from '../../codec/brand.ts';
import type { MessageType } from '../../codec/types.ts';
import { textOf } from '../foreign.ts';
import { Metadata, type MetadataInit } from '../metadata.ts';
import { checkNames } from '../options.ts';
import { errorCode, Status, type StatusCode, type StatusName, statusName } from './status.ts';
import { type ErrorDetail, type ErrorDetailInit, errorDetail } from './status-details.ts';

/**
 * Whether the handler can have run: `no` it cannot, `maybe` the request was sent and no answer came, `yes`
 * the server answered.
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
  /** Not sent to the peer. */
  cause?: unknown;
  /** Default `maybe`. Errors made by this library set it when they know. */
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

/** Limit of the chain of causes, which may be circular. */
const causesMax = 16;

/**
 * Returns the status code for an abort error, undefined for anything else. Node's functions throw an
 * AbortError with the signal's reason as its cause, so the causes decide: an RpcError among them (as for the
 * signals of handlers) is the most precise, then a TimeoutError.
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
    return undefined; // one of its getters has thrown
  }
}

export class RpcError extends Error {
  readonly code: StatusCode;
  /** For example `NOT_FOUND`. */
  readonly codeName: StatusName;
  /** The message without the code name in front. */
  readonly rawMessage: string;
  /** Metadata that the server sent with the error, or that is to be sent. */
  readonly trailer: Metadata;
  /** Encoded; `findDetails` decodes them. */
  readonly details: readonly ErrorDetail[];
  /**
   * Whether the handler can have run. `no`: it has not, so repeating the call is always safe. `maybe`: no
   * answer has arrived. `yes`: the server has answered.
   */
  readonly processed: Processed;

  /**
   * @param code one of {@link Status} except OK; another number becomes UNKNOWN. Throws a TypeError for an
   * unknown option, CodecError for a detail that cannot be encoded.
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
      throw new RangeError(`new RpcError: processed: ${String(this.processed)} is none of no, maybe, yes`);
  }

  /** Returns the details of one type, decoded; malformed ones are omitted. */
  findDetails<T>(type: MessageType<T, never>): T[] {
    const found: T[] = [];
    for (const detail of this.details) {
      if (detail.type !== type.typeName) continue;
      try {
        found.push(type.decode(detail.value));
      } catch {
        // The sender has another version of the type; for the caller the detail does not exist.
      }
    }
    return found;
  }

  /** The form used by JSON.stringify, for logs. Stack and cause are omitted; details are base64. */
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
   * Converts any error: an RpcError is returned unchanged, a TimeoutError (of `AbortSignal.timeout`) becomes
   * DEADLINE_EXCEEDED, an AbortError gets the code of its causes or CANCELLED, anything else `code` (UNKNOWN)
   * with its text and the original as cause.
   */
  static from(reason: unknown, code: StatusCode = Status.UNKNOWN): RpcError {
    if (reason instanceof RpcError) return reason;
    return new RpcError(abortCode(reason) ?? code, textOf(reason), { cause: reason });
  }

  static {
    brand(RpcError, 'RpcError');
  }
}
