/**
 * Makes the errors of remote memory.
 */
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status, type StatusCode } from '../core/errors/status.ts';

/** Returns the error of an operation or request that was refused before it began. */
export function refusal(code: StatusCode, text: string, cause?: unknown): RpcError {
  return new RpcError(code, text, { processed: 'no', cause });
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
