/**
 * An end of a tunnel is killed with SIGKILL in the middle of transfers: each program sees one end of each
 * connection, and no wrong byte before it. The end that lives serves the next connections.
 */
import { test } from 'vitest';
import { expectEndsOfPrograms } from './end-kills.ts';

test.each(['near', 'far'] as const)('the %s end is killed', async (killed) => {
  await expectEndsOfPrograms(killed, 3, 8);
});
