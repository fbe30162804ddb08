/**
 * What the addon does for the sockets of the sideband and the files beside them: part of native.ts. Used by
 * the control layer, on its JS thread.
 */

/** Of lockFile(); what is in it only native code knows. */
export type FileLock = object;

export interface NativeSockets {
  /**
   * A connection that this process has accepted, as a descriptor, and the greeting that it began with: goes
   * to the tcp session that it is for, whatever thread that is of. Empty, or why not. The descriptor is
   * duplicated.
   */
  handOff(fd: number, greeting: Uint8Array): string;
  /**
   * Whether this kernel can refuse descriptors that strangers send over unix sockets (SO_PASSRIGHTS, Linux
   * 6.16).
   */
  readonly refusesRights: boolean;
  /**
   * Refuses them at the unix socket of this process that listens at a path that ends with `name`, which
   * nobody knows yet; whoever has connected is sent away. False: there is none.
   */
  guardListener(name: string): boolean;
  /**
   * For other kernels: a descriptor that leads to the connection `fd`, by way of a thread that passes on
   * bytes and no descriptors. Negative: an errno.
   */
  relayBytes(fd: number): number;
  /**
   * A descriptor that is connected to a unix socket and gets no descriptors, `relayed` or by the kernel.
   * Negative: an errno.
   */
  dialUnix(path: string, relayed: boolean): number;
  /**
   * Locks a file that is created, or was left by a process that is gone. Throws with the `code` EWOULDBLOCK
   * when another holds it, EEXIST when it is somebody's file.
   */
  lockFile(path: string, text: string): FileLock;
  /** Removes the file and lets it go. The end of the process lets it go, too. */
  unlockFile(lock: FileLock): void;
  /**
   * Of the process at the other end of a unix socket, when it connected or began to listen; undefined for
   * other descriptors.
   */
  peerCredentials(fd: number): Readonly<Record<'pid' | 'uid' | 'gid', number>> | undefined;
}
