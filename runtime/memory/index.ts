/**
 * `rdma-rpc/memory`: remote memory. One side of a session exposes memory to the other side, which reads,
 * writes and updates it without a call. On devices that do this work themselves, the CPU of the exposing side
 * takes no part.
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
