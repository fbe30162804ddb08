/**
 * An end of a tunnel is stopped with SIGSTOP, as on a host that hangs. The other end must not wait for it
 * longer than `--grace` when it drains.
 */
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { comes } from '../../outcomes.ts';
import { dialTo, program } from './ends.ts';
import { start } from './running.ts';

test.each([
  ['near', 'its grace is over', 100],
  ['near', 'a second signal comes', 3_600_000],
  ['far', 'its grace is over', 100],
  ['far', 'a second signal comes', 3_600_000],
] as const)('the %s end drains until %s, although the other end is stopped', async (draining, _, graceMs) => {
  const echo = await program((socket) => socket.pipe(socket));
  const far = await start('--serve', '127.0.0.1:0', '--to', echo.address, '--grace', String(graceMs));
  const near = await start('--listen', '127.0.0.1:0', '--to', far.bound, '--grace', String(graceMs));
  const socket = dialTo(near.bound);
  socket.write('one');
  await once(socket, 'data');
  const [drains, stopped] = draining === 'near' ? [near, far] : [far, near];
  stopped.child.kill('SIGSTOP');
  drains.child.kill('SIGTERM');
  if (graceMs > 100) {
    while (!drains.lines.some((line) => line.startsWith('SIGTERM'))) await once(drains.child.stderr!, 'data');
    drains.child.kill('SIGTERM');
  }
  expect(await comes(drains.exit, `the exit of the ${draining} end`)).toBe(0);
  // The kernel keeps a stopped process's sockets, so this one is closed by its own side.
  socket.destroy();
  stopped.child.kill('SIGKILL');
  await stopped.exit;
  await echo.close();
});
