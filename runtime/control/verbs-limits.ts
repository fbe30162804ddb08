/**
 * Limits of the options of RDMA devices, each with its reason. Limits that are not specific to a folder are
 * in runtime/limits.ts.
 */

/**
 * A port of an RDMA device, and an index of its GID table. Each has eight bits in libibverbs. By default,
 * device and GID are chosen by the address of the sideband connection.
 */
export const verbsPort = { default: undefined, min: 1, max: 255 } as const;
export const verbsGidIndex = { default: undefined, min: 0, max: 255 } as const;
/**
 * An index of the table of P_Keys, which has 16 bits in libibverbs. The first entry is the default partition.
 */
export const verbsPkeyIndex = { default: undefined, min: 0, max: 65_535 } as const;
/** Name of an RDMA device: IBV_SYSFS_NAME_MAX. */
export const verbsDeviceBytes = 64;
/**
 * Time limit of one attempt to connect a queue pair by rdma_cm. It is less than `connectTimeoutMs`, so that
 * time is left for the next fabric.
 */
export const verbsConnectTimeoutMs = { default: 4_000, min: 1, max: 600_000 } as const;
/**
 * A packet is sent again when it is not acknowledged within 4.096 us * 2^n; 16 gives 268 ms. With 14 (67 ms)
 * all retries were over after 0.47 s, but a bond that fails over to its other link may lose packets for a
 * second.
 */
export const verbsAckTimeout = { default: 16, min: 1, max: 31 } as const;
/**
 * Number of resends before the session is lost. With this default and the default of `verbsAckTimeout`, the
 * loss is noticed after 1.9 s. A device may wait four times as long, as InfiniBand's specification allows;
 * the loss is then noticed after 7.5 s. On some devices 7 means no limit.
 */
export const verbsRetryCount = { default: 6, min: 0, max: 7 } as const;
/**
 * Fields of InfiniBand and IP headers. The number of RNR retries has 3 bits, and 7 means no limit. The
 * service level has 4 bits. The other fields are bytes of IP headers.
 */
export const verbsRnrRetry = { default: undefined, min: 0, max: 7 } as const;
export const verbsServiceLevel = { default: undefined, min: 0, max: 15 } as const;
export const verbsTrafficClass = { default: undefined, min: 0, max: 255 } as const;
