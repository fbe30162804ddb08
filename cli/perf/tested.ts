/** The result of a test, as `rdma-rpc perf --json` prints it. */
import type { PerfFabric, Plan } from './plan.ts';
import type { Row } from './row.ts';

export interface PeerRows {
  /** Address of the other side. */
  readonly address: string;
  readonly fabric: PerfFabric;
  readonly device: string;
  readonly peerDevice: string;
  readonly rows: readonly Row[];
  /**
   * The first message with wrong content. It is empty when no such message was found, or when messages were
   * not validated.
   */
  readonly firstCorrupt: string;
}

export interface Tested {
  readonly version: 1;
  readonly role: 'client' | 'server';
  readonly test: Plan['test'];
  readonly options: Omit<Plan, 'test' | 'sizes' | 'seed'>;
  readonly peers: readonly PeerRows[];
  /** Number of messages with wrong content, over all peers and sizes. */
  readonly corrupt: number;
}

export function testedOf(role: Tested['role'], plan: Plan, peers: readonly PeerRows[]): Tested {
  const { test, sizes: _sizes, seed: _seed, ...options } = plan;
  const corrupt = peers.flatMap(({ rows }) => rows).reduce((sum, row) => sum + (row.corrupt ?? 0), 0);
  return { version: 1, role, test, options, peers, corrupt };
}
