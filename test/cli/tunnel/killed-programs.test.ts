/**
 * Programs are killed with SIGKILL in the middle of transfers through a tunnel. The program at the other side
 * sees exactly one end of each connection, as over TCP, and no wrong byte before that end. The tunnel keeps
 * no memory of these connections.
 */
import { expect, test } from 'vitest';
import { expectEnds, type Through } from '../../socket/kills.ts';
import { tunnelTo } from './ends.ts';

test.each(['client', 'server'] as const)('killed %ss', async (killed) => {
  const open: number[] = [];
  const through: Through = async (server) => {
    const { near, counts, close } = await tunnelTo(server);
    return {
      address: near.bound,
      close: async () => {
        await close();
        open.push(counts.near.open, counts.far.open);
      },
    };
  };
  await expectEnds(killed, 'node:net', 3, 8, through);
  expect(open.every((count) => count === 0)).toBe(true);
  expect(open.length).toBeGreaterThan(0);
});
