/**
 * Tests killed clients and killed servers of sockets, and killed ends of a tunnel, each in the middle of
 * transfers. RDMA_RPC_KILLS=200 sets a larger number; each kill starts a process.
 */
import { test } from 'vitest';
import { expectEndsOfPrograms } from '../cli/tunnel/end-kills.ts';
import { expectEnds } from '../socket/kills.ts';

const kills = Number(process.env.RDMA_RPC_KILLS ?? 50);
/** Time limit for each kill, on a busy machine. */
const limitMs = 5_000;

test.each(['client', 'server'] as const)(
  `${kills} killed %ss`,
  { timeout: kills * limitMs },
  async (killed) => {
    await expectEnds(killed, 'ours', kills, 4);
  },
);

test.each(['near', 'far'] as const)(
  `the %s end of a tunnel, killed ${kills} times`,
  { timeout: kills * limitMs },
  async (killed) => {
    await expectEndsOfPrograms(killed, kills, 4);
  },
);
