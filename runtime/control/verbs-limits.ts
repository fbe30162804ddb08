/**
 * Limits of the options of RDMA devices, each with its reason (runtime/limits.ts has the central ones).
 */

/**
 * A port of an RDMA device, and an index of its GID table: eight bits each in libibverbs. Default: chosen by
 * address.
 */
export const verbsPort = { default: undefined, min: 1, max: 255 } as const;
export const verbsGidIndex = { default: undefined, min: 0, max: 255 } as const;
/** An index of the table of P_Keys: 16 bits in libibverbs. The first entry is the default partition. */
export const verbsPkeyIndex = { default: undefined, min: 0, max: 65_535 } as const;
/** Name of an RDMA device: IBV_SYSFS_NAME_MAX. */
export const verbsDeviceBytes = 64;
/**
 * Time for one attempt to connect a queue pair by rdma_cm. Less than `connectTimeoutMs`, so that time is left
 * for the next fabric.
 */
export const verbsConnectTimeoutMs = { default: 4_000, min: 1, max: 600_000 } as const;
/**
 * A packet is resent when it is not acknowledged within 4.096 us * 2^n. 14 is 67 ms, longer than any switch
 * holds a packet.
 */
export const verbsAckTimeout = { default: 14, min: 1, max: 31 } as const;
/**
 * Number of resends before the session is lost. With both defaults that takes half a second. On some devices
 * 7 means no limit.
 */
export const verbsRetryCount = { default: 6, min: 0, max: 7 } as const;
/**
 * Fields of InfiniBand: RNR retries have 3 bits, and 7 means no limit; the service level has 4 bits; the
 * others are bytes of IP headers.
 */
export const verbsRnrRetry = { default: undefined, min: 0, max: 7 } as const;
export const verbsServiceLevel = { default: undefined, min: 0, max: 15 } as const;
export const verbsTrafficClass = { default: undefined, min: 0, max: 255 } as const;
