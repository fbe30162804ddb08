/**
 * The call that `rdma-rpc ping` makes over the fabric. It names a method that exists on no server. This file
 * also has the queue of a session that makes one call at a time.
 */
import { type ClientMethod, clientMethod } from '../../runtime/client/call/client-method.ts';
import type { CallQueue } from '../../runtime/client/queue/call-queue.ts';
import { Empty } from '../../runtime/codec/google/protobuf/empty.rdma.ts';
import { methodId } from '../../runtime/codec/service/method-id.ts';
import type { MessageType } from '../../runtime/codec/types.ts';

const path = 'rdma_rpc.Ping/Ping';
export const pingMethod: ClientMethod = clientMethod(
  {
    name: 'Ping',
    fullName: path,
    id: methodId(path),
    input: Empty as MessageType<unknown, unknown>,
    requestStream: false,
    output: Empty as MessageType<unknown, unknown>,
    responseStream: false,
    options: {},
  },
  -1,
);

/** A queue in which calls never wait. */
export const noQueue: CallQueue = {
  waiting: { size: 0 },
  pump: () => undefined,
  pumpAfter: () => undefined,
  requeue: () => false,
  awaitMemory: () => false,
};
