/** The queue of a session on which `rdma-rpc ping` makes one call at a time. */
import type { CallQueue } from '../../runtime/client/queue/call-queue.ts';

/** A queue in which calls never wait. */
export const noQueue: CallQueue = {
  waiting: { size: 0 },
  pump: () => undefined,
  pumpAfter: () => undefined,
  requeue: () => false,
  awaitMemory: () => false,
};
