/** The scenarios of the benchmark of sockets that two processes of Node run between each other. */

export interface SocketScenario {
  readonly name: string;
  /**
   * `write` sends in one direction, as fast as the data is accepted. `ping` sends back and forth. `http`
   * makes requests of node:http.
   */
  readonly kind: 'write' | 'ping' | 'http';
  /** Bytes of each write, or of the body of each answer. */
  readonly bytes: number;
  /** Over a unix socket, which means shared memory for our sockets; or over TCP on loopback. */
  readonly network: 'unix' | 'tcp';
  /**
   * The way in which our library waits. With `event`, both sides sleep while they wait, and both processes
   * share a CPU.
   */
  readonly polling: 'adaptive' | 'busy' | 'event';
}

const MiB = 1024 * 1024;

export const socketScenarios: readonly SocketScenario[] = [
  { name: 'write-1MiB', kind: 'write', bytes: MiB, network: 'unix', polling: 'adaptive' },
  { name: 'ping-64B', kind: 'ping', bytes: 64, network: 'unix', polling: 'busy' },
  { name: 'ping-64B-asleep', kind: 'ping', bytes: 64, network: 'unix', polling: 'event' },
  { name: 'http', kind: 'http', bytes: 64, network: 'unix', polling: 'adaptive' },
  { name: 'tcp-write-1MiB', kind: 'write', bytes: MiB, network: 'tcp', polling: 'adaptive' },
  { name: 'tcp-ping-64B', kind: 'ping', bytes: 64, network: 'tcp', polling: 'busy' },
];

/**
 * Both libraries, and a second time our library, with buffers that stay unchanged so that the library does
 * not have to copy them.
 */
export const libraries = ['node:net', 'rdma-rpc', 'rdma-rpc stays'] as const;
export type Library = (typeof libraries)[number];

/** Returns the libraries that run a scenario. */
export function librariesOf({ kind }: SocketScenario): readonly Library[] {
  return kind === 'write' ? libraries : libraries.slice(0, 2);
}
