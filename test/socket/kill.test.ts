/**
 * A peer that is killed with SIGKILL in the middle of transfers. What `node:net` shows depends on the kernel:
 * it sends a reset if the dead process had not read everything, otherwise an orderly end, with which half a
 * message looks like a whole one. Ours is always a reset. So the normal form of the event is `gone`, and what
 * came before it must be right.
 */
import { test } from 'vitest';
import { expectEnds } from './kills.ts';

test.each([
  ['client', 'node:net'],
  ['client', 'ours'],
  ['server', 'node:net'],
  ['server', 'ours'],
] as const)(
  'a killed %s: each connection ends once, with right bytes before: %s',
  async (killed, library) => {
    await expectEnds(killed, library, 3, 10);
  },
);
