/** The one error class of both sides: thrown to callers, and thrown by handlers to answer with a status. */
import { Metadata } from './metadata.ts';
import { errorCode, Status, type StatusCode, type StatusName, statusName } from './status.ts';

/** Whether the handler can have run: `no` it cannot, `maybe` the request was posted and no answer came, `yes` the server answered. */
export type Sent = 'no' | 'maybe' | 'yes';

export interface RpcErrorOptions {
  /** From or for the peer. Default: empty. */
  metadata?: Metadata | undefined;
  /** Stays on this side. */
  cause?: unknown;
  /** Default `maybe`. Errors made by this library say what they know. */
  sent?: Sent | undefined;
}

export class RpcError extends Error {
  readonly code: StatusCode;
  /** For example `NOT_FOUND`. */
  readonly codeName: StatusName;
  /** The text without the code name in front. */
  readonly rawMessage: string;
  readonly metadata: Metadata;
  readonly sent: Sent;

  /** @param code one of {@link Status} but OK; another number becomes UNKNOWN */
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
    this.sent = options.sent ?? 'maybe';
  }

  /** An RpcError stays as it is, an AbortError becomes CANCELLED, anything else `code` (UNKNOWN) with its text and the original as cause. */
  static from(reason: unknown, code: StatusCode = Status.UNKNOWN): RpcError {
    if (reason instanceof RpcError) return reason;
    if (reason instanceof Error) {
      const kind = reason.name === 'AbortError' ? Status.CANCELLED : code;
      return new RpcError(kind, reason.message, { cause: reason });
    }
    return new RpcError(code, String(reason), { cause: reason });
  }

  /** By shape, so that `instanceof` also works when two copies of this package are loaded. */
  static override [Symbol.hasInstance](value: unknown): boolean {
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
