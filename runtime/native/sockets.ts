/**
 * The addon's functions for the sockets of the sideband and the lock files beside them. Part of native.ts;
 * used by the control layer, on its JS thread.
 */

/** The result of lockFile(), opaque to JS. */
export type FileLock = object;

export interface NativeSockets {
  /**
   * Hands an accepted connection to the tcp session that it is for, on whatever thread that session is. `fd`
   * is the connection, which is duplicated; `connectMessage` is what the connection began with. Returns '' on
   * success, or why it was refused.
   */
  handOff(fd: number, connectMessage: Uint8Array): string;
  /**
   * Whether this kernel can refuse descriptors that unauthenticated peers send over unix sockets
   * (SO_PASSRIGHTS, Linux 6.16).
   */
  readonly refusesRights: boolean;
  /**
   * Makes the listening unix socket of this process whose path ends with `name` refuse descriptors. Call it
   * before clients know the path: existing connections are closed. Returns false when there is no such
   * socket.
   */
  guardListener(name: string): boolean;
  /**
   * For other kernels: returns a descriptor that leads to the connection `fd` through a thread that passes on
   * bytes but no descriptors, or a negative errno.
   */
  relayBytes(fd: number): number;
  /**
   * Connects to a unix socket so that no descriptors can be received: through the relay thread with
   * `relayed`, otherwise by the kernel. Returns the descriptor, or a negative errno.
   */
  dialUnix(path: string, relayed: boolean): number;
  /**
   * Locks a file, which is created or was left by a process that has ended. Throws with the `code`
   * EWOULDBLOCK when another process holds the lock, EEXIST when the file is not a lock file.
   */
  lockFile(path: string, text: string): FileLock;
  /** Removes the file and releases the lock. The end of the process releases it, too. */
  unlockFile(lock: FileLock): void;
  /**
   * Returns the credentials of the process at the other end of a unix socket, as of the time when it
   * connected or began to listen; undefined for other descriptors.
   */
  peerCredentials(fd: number): Readonly<Record<'pid' | 'uid' | 'gid', number>> | undefined;
}
