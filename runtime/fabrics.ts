/**
 * The fabrics, a row each: all that TypeScript has to know of how they differ. Nobody else in `runtime/` or
 * `cli/` asks for a fabric by its name, so a new one is a row here and a folder in `native/fabric`
 * (CONTRIBUTING has the list). Constants, read by boundary/ and control/ on every JS thread.
 */

export interface FabricRow {
  /**
   * What two queue pairs exchange below the frames of their sessions has this version
   * (native/fabric/versions.h). Sides with different ones do not connect by this fabric.
   */
  readonly version: number;
  /**
   * What the two sides of a session must share: one process; one host, as processes that may open each
   * other's memory through /proc; one kernel, as containers and other users do; or nothing but a network.
   */
  readonly reach: 'process' | 'host' | 'kernel' | 'network';
  /**
   * Where a client's queue pair connects to by itself: to the server's host:port, or to the path of its unix
   * socket.
   */
  readonly dials: 'nothing' | 'hostPort' | 'path';
  /** It is opened on an RDMA device, which the option `verbs` chooses. */
  readonly hasDevice: boolean;
  /** Native code carries it. */
  readonly needsAddon: boolean;
  /**
   * The device of `openVerbsDevice` on which remote memory has its queue pair. Undefined for none: peers of
   * `shm-fd` are not trusted and keep what they have mapped, so rights could not end.
   */
  readonly device: 'sim' | 'shm' | 'tcp' | 'verbs' | undefined;
  /**
   * Whose default size of a slot it has: that of shared memory, or that of what has to be registered
   * (limits.ts).
   */
  readonly slots: 'shared' | 'registered';
  /**
   * Each session has a context of its own: what is shown to one peer of a context is shown to all of its
   * peers.
   */
  readonly isAlone: boolean;
  /**
   * Its credits are granted out of receives that sessions share, where both sides know how
   * (docs/wire/calls.md, section 4).
   */
  readonly creditPool: boolean;
  /**
   * Whether a server whose fabrics were not named opens it in listen(): in any case; where it has opened no
   * other one; or only when a client comes, since a device that is open holds locked memory.
   */
  readonly opens: 'early' | 'instead' | 'late';
}

/** In the order of `auto`. */
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
  /** Between the two sides of createInProcessChannel(), which names it itself. */
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
  /** The same where the addon cannot be loaded (runtime/loopback). */
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

/** Those that can be asked for: all that reach beyond their process. */
export type Fabric = Exclude<FabricName, 'sim' | 'loopback'>;

/** The row of a fabric, whose values the compiler does not know beforehand. */
export const fabricRow = (name: FabricName): FabricRow => fabrics[name];

/** Whether listen() opens a fabric that nobody has named. `isFirst`: it has opened no other one. */
export function opensInListen(name: FabricName, isFirst: boolean): boolean {
  const { opens } = fabrics[name];
  return opens === 'early' || (opens === 'instead' && isFirst);
}

/** Those that can be chosen between two processes, in the order of `auto`. */
export const fabricNames = (Object.keys(fabrics) as FabricName[]).filter(
  (name): name is Fabric => fabricRow(name).reach !== 'process',
);
