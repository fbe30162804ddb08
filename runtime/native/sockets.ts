/**
 * The addon's functions for the sockets of sideband connections and for the lock files beside them. They are
 * part of native.ts. The control layer uses them, on its JS thread.
 */

/** The result of lockFile(), which is opaque to JS. */
export type FileLock = object;

export interface NativeSockets {
  /**
   * Hands an accepted connection to its tcp session, which may run on any thread. `fd` is the descriptor of
   * the connection, which is duplicated. `connectMessage` is the message with which the connection began.
   * Returns '' on success, or the reason why the connection was refused.
   */
  handOff(fd: number, connectMessage: Uint8Array): string;
  /**
   * Whether this kernel can refuse descriptors that unauthenticated peers send over unix sockets
   * (SO_PASSRIGHTS, Linux 6.16).
   */
  readonly refusesRights: boolean;
  /**
   * Makes the listening unix socket of this process whose path ends with `name` refuse descriptors. Call it
   * before clients know the path, because existing connections are closed. Returns false when there is no
   * such socket.
   */
  guardListener(name: string): boolean;
  /**
   * Returns a descriptor that leads to the connection `fd` through a thread, for kernels that cannot do this
   * without a thread. The thread passes on bytes but no descriptors. Returns a negative errno on failure.
   */
  relayBytes(fd: number): number;
  /**
   * Connects to a unix socket in such a way that descriptors cannot be received. With `relayed`, the relay
   * thread keeps descriptors away; otherwise the kernel does. Returns the descriptor, or a negative errno.
   */
  dialUnix(path: string, relayed: boolean): number;
  /**
   * Locks a file. The file is created unless it already exists because an earlier process has left it behind.
   * Throws with the `code` EWOULDBLOCK when another process holds the lock, and with EEXIST when the file is
   * not a lock file.
   */
  lockFile(path: string, text: string): FileLock;
  /** Removes the file and releases the lock. The lock is also released when the process ends. */
  unlockFile(lock: FileLock): void;
  /**
   * Returns the credentials of the process at the other end of a unix socket, as of the time when the process
   * connected or began to listen. Returns undefined for other descriptors.
   */
  peerCredentials(fd: number): Readonly<Record<'pid' | 'uid' | 'gid', number>> | undefined;
  /**
   * Returns the errno that the kernel has recorded for a socket, or 0. The kernel forgets the error when it
   * is read.
   */
  takeSocketError(fd: number): number;
}
