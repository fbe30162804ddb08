/**
 * A peer is killed with SIGKILL in the middle of transfers. With `node:net` the kernel chooses how the
 * connection ends: with a reset if the dead process had unread bytes, otherwise with an orderly end, so that
 * half a message looks like a complete message. With rdma-rpc/socket the connection always ends with a reset.
 * In both cases each connection must end once, and all bytes before its end must be right.
 */
import { test } from 'vitest';
import { expectEnds } from './kills.ts';

test.each([
  ['client', 'node:net'],
  ['client', 'ours'],
  ['server', 'node:net'],
  ['server', 'ours'],
] as const)(
  'when a %s is killed, each connection ends once, with right bytes before its end: %s',
  async (killed, library) => {
    await expectEnds(killed, library, 3, 10);
  },
);
