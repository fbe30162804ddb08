/** The error of an attempt to connect to an address. Endpoints use this file. */
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';

export function connectError(address: string, cause: unknown): RpcError {
  const known = RpcError.from(cause, Status.UNAVAILABLE);
  const text = `cannot connect to ${address}: ${known.rawMessage}`;
  return new RpcError(known.code, text, { processed: 'no', cause, trailer: known.trailer });
}
