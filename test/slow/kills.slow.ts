/** 200 killed clients and 200 killed servers of sockets, each in the middle of transfers. */
import { test } from 'vitest';
import { expectEnds } from '../socket/kills.ts';

test.each(['client', 'server'] as const)('200 killed %ss', async (killed) => {
  await expectEnds(killed, 'ours', 200, 4);
});
