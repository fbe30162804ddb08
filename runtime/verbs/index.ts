/**
 * `rdma-rpc/verbs`: direct use of RDMA devices, without RPC. The objects and names are those of libibverbs:
 * protection domains, memory regions, completion queues, queue pairs and work requests. They work on RDMA
 * devices and on software devices (`sim`, `shm`, `tcp`), which behave alike. Unlike the C library it checks
 * every call. A wrong call throws an error, instead of crashing or corrupting memory.
 */

export type {
  VerbsCapabilities,
  VerbsDetails,
  VerbsGid,
  VerbsPort,
  VerbsPortDetails,
} from '../native/native.ts';
export type { AddressHandle, AddressOptions } from './address-handle.ts';
export { type BindOptions, RecvBatch, SendBatch } from './batches.ts';
export type { CompletionQueue } from './completion-queue.ts';
export { Completions } from './completions.ts';
export {
  Access,
  type Feature,
  type QpState,
  type QpType,
  SendFlags,
  statusName,
  WcFlags,
  WcOpcode,
  WcStatus,
} from './constants.ts';
export { type Device, type OpenOptions, openDevice, type SoftwareDevice } from './device.ts';
export { VerbsError, type VerbsErrorCode } from './errors.ts';
export type { DeviceEvent } from './events.ts';
export { type DeviceInfo, listDevices, queryDevice } from './list.ts';
export { listenerAddress } from './listener-address.ts';
export type { MemoryRegion, Registrable } from './memory-region.ts';
export type { MemoryWindow } from './memory-window.ts';
export type { ProtectionDomain, QueuePairOptions } from './protection-domain.ts';
export type { QueuePair } from './queue-pair.ts';
export type { SharedReceiveQueue } from './shared-receives.ts';
