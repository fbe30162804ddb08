/** The one error class of both sides: thrown to callers, and thrown by handlers to answer with a status. */
import type { MessageType } from '../codec/types.ts';
import { Metadata } from './metadata.ts';
import { errorCode, Status, type StatusCode, type StatusName, statusName } from './status.ts';
import { type ErrorDetail, type ErrorDetailInit, errorDetail } from './status-details.ts';

/** Whether the handler can have run: `no` it cannot, `maybe` the request was posted and no answer came, `yes` the server answered. */
export type Sent = 'no' | 'maybe' | 'yes';

export interface RpcErrorOptions {
  /** Messages that say more, as a program needs it: `{ type: BadRequest, value: {...} }`. Those of google.rpc are in `rdma-rpc/details`. */
  details?: readonly ErrorDetailInit[] | undefined;
  /** From or for the peer. Default: empty. */
  metadata?: Metadata | undefined;
  /** Stays on this side. */
  cause?: unknown;
  /** Default `maybe`. Errors made by this library say what they know. */
  sent?: Sent | undefined;
}

const none: readonly ErrorDetail[] = [];
/** Names of the errors that an AbortSignal gives. */
const abortCodes: Readonly<Record<string, StatusCode>> = {
  AbortError: Status.CANCELLED,
  TimeoutError: Status.DEADLINE_EXCEEDED,
};

export class RpcError extends Error {
  readonly code: StatusCode;
  /** For example `NOT_FOUND`. */
  readonly codeName: StatusName;
  /** The text without the code name in front. */
  readonly rawMessage: string;
  readonly metadata: Metadata;
  /** Encoded; `findDetails` decodes them. */
  readonly details: readonly ErrorDetail[];
  readonly sent: Sent;

  /** @param code one of {@link Status} but OK; another number becomes UNKNOWN. Throws CodecError for a detail that cannot be encoded. */
  constructor(code: StatusCode, message: string, options: RpcErrorOptions = {}) {
    const known = errorCode(code);
    super(
      `${statusName(known)}: ${message}`,
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.name = 'RpcError';
    this.code = known;
    this.codeName = statusName(known);
    this.rawMessage = message;
    this.metadata = options.metadata ?? new Metadata();
    this.details = options.details?.map(errorDetail) ?? none;
    this.sent = options.sent ?? 'maybe';
  }

  /** The details of one type, decoded; malformed ones are left out. */
  findDetails<T>(type: MessageType<T, never>): T[] {
    const found: T[] = [];
    for (const detail of this.details) {
      if (detail.type !== type.typeName) continue;
      try {
        found.push(type.decode(detail.value));
      } catch {
        // Whoever sent it has another idea of the type: for the caller it is as if it were not there.
      }
    }
    return found;
  }

  /** An RpcError stays as it is, an AbortError becomes CANCELLED, a TimeoutError (of `AbortSignal.timeout`) DEADLINE_EXCEEDED, anything else `code` (UNKNOWN) with its text and the original as cause. */
  static from(reason: unknown, code: StatusCode = Status.UNKNOWN): RpcError {
    if (reason instanceof RpcError) return reason;
    if (reason instanceof Error) {
      return new RpcError(abortCodes[reason.name] ?? code, reason.message, { cause: reason });
    }
    return new RpcError(code, String(reason), { cause: reason });
  }

  /** By shape, so that `instanceof` also works when two copies of this package are loaded. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    // A subclass inherits this, and is no question of shape.
    // biome-ignore lint/complexity/noThisInStatic: it is about the class that was asked
    if (this !== RpcError) return Function.prototype[Symbol.hasInstance].call(this, value);
    if (!(value instanceof Error) || value.name !== 'RpcError') return false;
    const error = value as Partial<RpcError>;
    return (
      typeof error.code === 'number' &&
      typeof error.codeName === 'string' &&
      typeof error.rawMessage === 'string' &&
      typeof error.sent === 'string'
    );
  }
}
