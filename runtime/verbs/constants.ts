/**
 * The numbers of libibverbs that applications of `rdma-rpc/verbs` use: rights, flags, operations and
 * statuses, with the values of its header.
 */

/**
 * Rights of a memory region, to be combined with `|` (`enum ibv_access_flags`). Local reads are always
 * allowed.
 */
export const Access = {
  /** Receives and READs may write the memory. */
  localWrite: 1 << 0,
  /** The peer may WRITE the memory; needs `localWrite`. */
  remoteWrite: 1 << 1,
  /** The peer may READ the memory. */
  remoteRead: 1 << 2,
  /** The peer may update the memory by atomics; needs `localWrite`. */
  remoteAtomic: 1 << 3,
  /** Windows may be bound to the memory (`ProtectionDomain.allocMw`). */
  mwBind: 1 << 4,
  /** Pages are loaded when they are used, instead of being pinned (`capabilities.onDemand`). */
  onDemand: 1 << 6,
} as const;

/** Flags of a request, to be combined with `|` (`enum ibv_send_flags`). */
export const SendFlags = {
  /** Waits until earlier READs of this queue pair are done. */
  fence: 1 << 0,
  /** Asks for a completion. Without this flag only a request that fails has a completion. */
  signaled: 1 << 1,
  /** Wakes a peer that waits for solicited messages only. */
  solicited: 1 << 2,
  /** Copies the bytes, at most `capabilities.maxInline`, when the request is posted. */
  inline: 1 << 3,
} as const;

/** The operation of a completion (`enum ibv_wc_opcode`). */
export const WcOpcode = {
  send: 0,
  rdmaWrite: 1,
  rdmaRead: 2,
  compSwap: 3,
  fetchAdd: 4,
  bindMw: 5,
  localInv: 6,
  recv: 128,
  recvRdmaWithImm: 129,
} as const;

/** Bits of `Completions.flags` (`enum ibv_wc_flags`). */
export const WcFlags = {
  /** The first 40 bytes of the receive are the header of a datagram. */
  grh: 1 << 0,
  /** `imm` has the peer's immediate. */
  withImm: 1 << 1,
  /** `invalidatedRkey` has the key of the window that the message has invalidated. */
  withInv: 1 << 3,
} as const;

/** Result of a request (`enum ibv_wc_status`). */
export const WcStatus = {
  success: 0,
  /** The message is longer than its receive. */
  locLenErr: 1,
  /** The queue pair cannot do this operation. */
  locQpOpErr: 2,
  /** A scatter/gather entry lies outside its region. */
  locProtErr: 4,
  /** The queue pair went to ERR before the request was done. */
  wrFlushErr: 5,
  mwBindErr: 6,
  /** The peer could not accept the message. */
  remInvReqErr: 9,
  /** The peer refused the key, the right or the range. */
  remAccessErr: 10,
  /** The peer does not answer. */
  retryExcErr: 12,
  /** The peer had no receive posted. */
  rnrRetryExcErr: 13,
  /** The peer has closed the connection. */
  remAbortErr: 16,
  generalErr: 21,
} as const;

const statusNames = new Map<number, string>([
  [0, 'success'],
  [1, 'loc_len_err'],
  [2, 'loc_qp_op_err'],
  [4, 'loc_prot_err'],
  [5, 'wr_flush_err'],
  [6, 'mw_bind_err'],
  [9, 'rem_inv_req_err'],
  [10, 'rem_access_err'],
  [12, 'retry_exc_err'],
  [13, 'rnr_retry_exc_err'],
  [16, 'rem_abort_err'],
  [21, 'general_err'],
]);

/**
 * Returns the name of a completion's status as in `ibv_wc_status`, such as `rem_access_err`. See
 * ibv_wc_status_str(3).
 */
export function statusName(status: number): string {
  return statusNames.get(status) ?? `unknown status ${status}`;
}

/** The state of a queue pair (`enum ibv_qp_state`). */
export type QpState = 'RESET' | 'INIT' | 'RTR' | 'RTS' | 'ERR' | 'SQD' | 'SQE';

/** The states, by their numbers in native code (QpState in native/fabric/fabric.h). */
export const states: readonly QpState[] = ['RESET', 'INIT', 'RTR', 'RTS', 'ERR', 'SQD', 'SQE'];

/**
 * The type of a queue pair: reliable and connected (`rc`), unreliable and connected (`uc`), or for datagrams
 * (`ud`).
 */
export type QpType = 'rc' | 'uc' | 'ud';

/** The types, by their numbers in native code (QpType in native/fabric/fabric.h). */
export const qpTypes: readonly QpType[] = ['rc', 'uc', 'ud'];

/** The features, by their numbers in native code (Feature in native/fabric/capabilities.h). */
export const features = [
  'sendWithImm',
  'writeWithImm',
  'windows',
  'atomics',
  'solicited',
  'sharedReceives',
  'srqLimit',
  'uc',
  'ud',
  'multicast',
  'drain',
  'reset',
  'steps',
  'xrc',
] as const;
/** A feature that a device may lack. `Device.whyNot` says why. */
export type Feature = (typeof features)[number];

/** The operation of a request (`enum ibv_wr_opcode`). */
export const WrOpcode = {
  rdmaWrite: 0,
  rdmaWriteWithImm: 1,
  send: 2,
  sendWithImm: 3,
  rdmaRead: 4,
  compareAndSwap: 5,
  fetchAndAdd: 6,
  localInv: 7,
  bindMw: 8,
  sendWithInv: 9,
} as const;
