/**
 * `rdma-rpc/details`: the messages of google.rpc for the details of errors, generated from proto/google/rpc.
 * Pass the messages to `new RpcError(..., { details })`; `error.findDetails(type)` finds them again.
 */
import type { MessageType } from '../codec/types.ts';

export * from './gen/google/rpc/error_details.rdma.ts';
export {
  Status as StatusMessage,
  type StatusInit as StatusMessageInit,
} from './gen/google/rpc/status.rdma.ts';

/** Makes a detail; the compiler checks its value against its type. */
export function detail<Init extends object>(
  type: MessageType<unknown, Init>,
  value: Init,
): { type: MessageType<unknown, Init>; value: Init } {
  return { type, value };
}
