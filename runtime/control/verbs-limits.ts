/**
 * Limits of the options of RDMA devices, each with its reason (runtime/limits.ts has the central ones).
 */

/**
 * A port of an RDMA device, and an entry of its GID table: eight bits each in libibverbs. Without: chosen by
 * address.
 */
export const verbsPort = { default: undefined, min: 1, max: 255 } as const;
export const verbsGidIndex = { default: undefined, min: 0, max: 255 } as const;
/** Name of an RDMA device: IBV_SYSFS_NAME_MAX. */
export const verbsDeviceBytes = 64;
/**
 * One attempt to connect a queue pair by rdma_cm. Less than `connectTimeoutMs`, so that the next fabric gets
 * its turn.
 */
export const verbsConnectTimeoutMs = { default: 4_000, min: 1, max: 600_000 } as const;
/**
 * A packet is sent again when no answer came for 4.096 us * 2^n. 14: 67 ms, longer than any switch holds a
 * packet.
 */
export const verbsAckTimeout = { default: 14, min: 1, max: 31 } as const;
/** That often, then the session is lost: with the above after half a second. 7 is endless on some devices. */
export const verbsRetryCount = { default: 6, min: 0, max: 7 } as const;
/** Codes of InfiniBand: 3 bits, of which 7 stands for endless; 4 bits; and bytes of IP's headers. */
export const verbsRnrRetry = { default: undefined, min: 0, max: 7 } as const;
export const verbsServiceLevel = { default: undefined, min: 0, max: 15 } as const;
export const verbsTrafficClass = { default: undefined, min: 0, max: 255 } as const;
