/** The errors of remote memory. */
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status, type StatusCode } from '../core/errors/status.ts';

/** An operation or a request that was not begun. */
export function refusal(code: StatusCode, text: string, cause?: unknown): RpcError {
  return new RpcError(code, text, { processed: 'no', cause });
}

/** An operation that was begun, on a queue pair that has ended. */
export function lost(reason: string): RpcError {
  return new RpcError(Status.UNAVAILABLE, `remote memory: ${reason}`);
}

/** The peer has taken the memory back. `began`: parts of the operation may have been done. */
export function takenBack(began: boolean): RpcError {
  return new RpcError(Status.FAILED_PRECONDITION, 'remote memory: the peer has taken it back', {
    processed: began ? 'maybe' : 'no',
  });
}
