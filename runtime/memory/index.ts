/**
 * `rdma-rpc/memory`: memory that one side of a session exposes to the other, which reads, writes and updates
 * it without a call and without its CPU where a device does the work.
 */
export { memoryOf } from './accept.ts';
export { connectMemory } from './connect.ts';
export { RemoteMemory } from './gen/rdma_rpc/remote_memory.rdma.ts';
export type {
  ExposeOptions,
  Exposure,
  Handle,
  LocalMemory,
  Memories,
  MemoryOptions,
  PeerMemory,
  Remote,
  Written,
} from './memory-type.ts';
