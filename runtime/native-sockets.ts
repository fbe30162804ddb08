/** What native code does with sockets of the control plane: a part of the native boundary (native.ts), implemented by native/binding. */

export interface NativeSockets {
  /** A connection that this process has accepted, as a descriptor, and the greeting that it began with: goes to the tcp session that it is for, whatever thread that is of. Empty, or why not. The descriptor is duplicated. */
  handOver(fd: number, greeting: Uint8Array): string;
  /** Whether this kernel can refuse descriptors that strangers send over unix sockets (SO_PASSRIGHTS, Linux 6.16). */
  readonly refusesRights: boolean;
  /** Refuses them at the unix socket of this process that listens at a path that ends with `name`, which nobody knows yet; whoever has connected is sent away. False: there is none. */
  guardListener(name: string): boolean;
  /** For other kernels: a descriptor that leads to the connection `fd`, by way of a thread that passes on bytes and no descriptors. Negative: an errno. */
  carry(fd: number): number;
  /** A descriptor that is connected to a unix socket and gets no descriptors, `carried` or by the kernel. Negative: an errno. */
  dialUnix(path: string, carried: boolean): number;
}
