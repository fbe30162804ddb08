/**
 * An end of a tunnel has no file descriptors left. The open connections continue, and further connections end
 * at once. When descriptors are free again, new connections work.
 */
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { comes, until } from '../../outcomes.ts';
import { dialTo, program } from './ends.ts';
import { start, startWithFew } from './running.ts';

/** Node and the session take about half of these descriptors. */
const descriptors = 80;
const connections = 120;

/** Resolves to the echo of `word`, or to undefined when the connection ends without it. */
function echoOf(socket: Socket, word: string): Promise<string | undefined> {
  socket.write(word);
  return comes(
    new Promise((resolve) => {
      socket.once('data', (bytes) => resolve(String(bytes)));
      socket.once('close', () => resolve(undefined));
    }),
    `the echo of ${word}, or the end of its connection`,
  );
}

test.each(['near', 'far'] as const)('the %s end has no file descriptors left', async (limited) => {
  let open = 0;
  const echo = await program((socket) => {
    ++open;
    socket.pipe(socket).once('close', () => --open);
  });
  const begin = (end: string, ...args: string[]) =>
    end === limited ? startWithFew(descriptors, ...args) : start(...args);
  const far = await begin('far', '--serve', '127.0.0.1:0', '--to', echo.address);
  const near = await begin('near', '--listen', '127.0.0.1:0', '--to', far.bound);
  // The session exists before the descriptors are used up.
  const first = dialTo(near.bound);
  expect(await echoOf(first, 'first')).toBe('first');

  const sockets = Array.from({ length: connections }, () => dialTo(near.bound));
  const answers = await Promise.all(sockets.map((socket) => echoOf(socket, 'one')));
  const served = sockets.filter((_, i) => answers[i] === 'one');
  expect(served.length).toBeGreaterThan(0);
  expect(served.length).toBeLessThan(connections);

  const living = [first, ...served];
  expect(await Promise.all(living.map((socket) => echoOf(socket, 'two')))).toEqual(living.map(() => 'two'));

  for (const socket of living) socket.destroy();
  await until(() => open === 0);
  // The end may notice later than the program that its descriptors are free.
  for (let answer: string | undefined; answer !== 'three'; ) {
    const socket = dialTo(near.bound);
    answer = await echoOf(socket, 'three');
    socket.destroy();
  }
  for (const each of [near, far]) each.child.kill('SIGTERM');
  expect([await near.exit, await far.exit]).toEqual([0, 0]);
  await echo.close();
});
