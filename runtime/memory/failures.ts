/**
 * Makes the errors of remote memory.
 */
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status, type StatusCode } from '../core/errors/status.ts';
import { textOf } from '../core/foreign.ts';
import { VerbsError, type VerbsErrorCode } from '../verbs/errors.ts';

/** Returns the error of an operation or request that was refused before it began. */
export function refusal(code: StatusCode, text: string, cause?: unknown): RpcError {
  return new RpcError(code, text, { processed: 'no', cause });
}

/** The status and the next step for each cause. A cause without an entry is a mistake of this library. */
const stagingCauses: Partial<Record<VerbsErrorCode, readonly [StatusCode, string]>> = {
  refused: [
    Status.RESOURCE_EXHAUSTED,
    'raise that limit, or use memory of alloc() of this link, which needs no copy',
  ],
  closed: [Status.UNAVAILABLE, 'connect again'],
  unsupported: [Status.UNIMPLEMENTED, 'use another device or fabric'],
};

/** Returns the error of an operation for which the memory to copy through cannot be made. */
export function noStaging(operation: string, cause: unknown): RpcError {
  const known = cause instanceof VerbsError ? stagingCauses[cause.code] : undefined;
  const [code, next] = known ?? [Status.INTERNAL, 'please report this error'];
  const text = `${operation}: remote memory: no memory to copy through: ${textOf(cause)}; ${next}`;
  return refusal(code, text, cause);
}

/** Returns the error of an operation that had begun when its queue pair ended. */
export function lost(reason: string): RpcError {
  return new RpcError(Status.UNAVAILABLE, `remote memory: ${reason}`);
}

/**
 * Returns the error of an operation on memory that the peer has revoked. With `began`, parts of the operation
 * may have been done.
 */
export function takenBack(began: boolean): RpcError {
  return new RpcError(Status.FAILED_PRECONDITION, 'remote memory: the peer has taken it back', {
    processed: began ? 'maybe' : 'no',
  });
}
