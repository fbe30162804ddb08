/**
 * `rdma-rpc/details`: the messages that google.rpc has for the details of errors. Generated from
 * proto/google/rpc. Given to `new RpcError(..., { details })`, found again by `error.findDetails(type)`.
 */
import type { MessageType } from '../codec/types.ts';

export * from './gen/google/rpc/error_details.rdma.ts';
export {
  Status as StatusMessage,
  type StatusInit as StatusMessageInit,
} from './gen/google/rpc/status.rdma.ts';

/** A detail whose value is checked against its type by the compiler. */
export function detail<Init extends object>(
  type: MessageType<unknown, Init>,
  value: Init,
): { type: MessageType<unknown, Init>; value: Init } {
  return { type, value };
}
