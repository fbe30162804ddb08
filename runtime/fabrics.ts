/**
 * The fabrics: a table with everything that TypeScript needs to know about their differences. No other code
 * in `runtime/` or `cli/` checks for a fabric by its name. Therefore a new fabric needs an entry here and a
 * folder in `native/fabric` (CONTRIBUTING has the list). The folders boundary/ and control/ read these
 * constants on every JS thread.
 */

export interface FabricRow {
  /**
   * Version of the fabric's own protocol, below the frames of sessions (native/fabric/versions.h). Two sides
   * with different versions do not connect over this fabric.
   */
  readonly version: number;
  /**
   * The environment that both sides of a session must share. `host` is for processes that can open each
   * other's memory through /proc, and `kernel` for containers and other users of one machine.
   */
  readonly reach: 'process' | 'host' | 'kernel' | 'network';
  /**
   * The address to which a client's queue pair makes a connection of its own: the server's host:port, or the
   * path of the server's unix socket.
   */
  readonly dials: 'nothing' | 'hostPort' | 'path';
  /** True when the fabric is opened on an RDMA device, which the option `verbs` chooses. */
  readonly hasDevice: boolean;
  /** True when native code implements the fabric. */
  readonly needsAddon: boolean;
  /**
   * The device of `openVerbsDevice` on which remote memory has its queue pair. It is undefined when the
   * fabric has no remote memory. For example, peers of `shm-fd` are not trusted and keep memory that they
   * have mapped, so their rights could not be revoked.
   */
  readonly device: 'sim' | 'shm' | 'tcp' | 'verbs' | undefined;
  /**
   * The default size of a slot: the size for shared memory, or the size for memory that has to be registered
   * (limits.ts).
   */
  readonly slots: 'shared' | 'registered';
  /**
   * True when each session needs a context of its own, because all peers of a context see the same memory.
   */
  readonly isAlone: boolean;
  /**
   * True when sessions of the fabric can share receives and take their credits from a pool, if both sides
   * support this (docs/wire/calls.md, section 4).
   */
  readonly creditPool: boolean;
  /**
   * Determines when a server opens the fabric, if the options did not name the fabrics. With `early`,
   * listen() always opens the fabric. With `instead`, listen() opens the fabric if no other fabric is open.
   * With `late`, the fabric is opened when a client connects, because an open device holds locked memory.
   */
  readonly opens: 'early' | 'instead' | 'late';
}

/** The fabrics in the order of `auto`. */
export const fabrics = {
  shm: {
    version: 3,
    reach: 'host',
    dials: 'nothing',
    hasDevice: false,
    needsAddon: true,
    device: 'shm',
    slots: 'shared',
    isAlone: false,
    creditPool: false,
    opens: 'early',
  },
  'shm-fd': {
    version: 3,
    reach: 'kernel',
    dials: 'path',
    hasDevice: false,
    needsAddon: true,
    device: undefined,
    slots: 'shared',
    isAlone: true,
    creditPool: false,
    opens: 'late',
  },
  verbs: {
    version: 1,
    reach: 'network',
    dials: 'nothing',
    hasDevice: true,
    needsAddon: true,
    device: 'verbs',
    slots: 'registered',
    isAlone: false,
    creditPool: true,
    opens: 'late',
  },
  tcp: {
    version: 1,
    reach: 'network',
    dials: 'hostPort',
    hasDevice: false,
    needsAddon: true,
    device: 'tcp',
    slots: 'registered',
    isAlone: false,
    creditPool: false,
    opens: 'instead',
  },
  /** Connects the two sides of createInProcessChannel(), which selects this fabric. */
  sim: {
    version: 1,
    reach: 'process',
    dials: 'nothing',
    hasDevice: false,
    needsAddon: true,
    device: 'sim',
    slots: 'registered',
    isAlone: false,
    creditPool: false,
    opens: 'late',
  },
  /** Replaces `sim` when the addon cannot be loaded (runtime/loopback). */
  loopback: {
    version: 1,
    reach: 'process',
    dials: 'nothing',
    hasDevice: false,
    needsAddon: false,
    device: undefined,
    slots: 'registered',
    isAlone: false,
    creditPool: false,
    opens: 'late',
  },
} as const satisfies Record<string, FabricRow>;

export type FabricName = keyof typeof fabrics;

/** The fabrics that users can select, which are all fabrics that connect processes. */
export type Fabric = Exclude<FabricName, 'sim' | 'loopback'>;

/** Returns the entry of a fabric, for code that does not know the fabric at compile time. */
export const fabricRow = (name: FabricName): FabricRow => fabrics[name];

/**
 * Returns whether listen() opens a fabric that was not named. `isFirst` is true when no other fabric is open
 * yet.
 */
export function opensInListen(name: FabricName, isFirst: boolean): boolean {
  const { opens } = fabrics[name];
  return opens === 'early' || (opens === 'instead' && isFirst);
}

/** The fabrics that can connect two processes, in the order of `auto`. */
export const fabricNames = (Object.keys(fabrics) as FabricName[]).filter(
  (name): name is Fabric => fabricRow(name).reach !== 'process',
);
