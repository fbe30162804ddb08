/** Tests `rdma-rpc tunnel` as processes: flags, metrics, signals, a killed and a restarted far end. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { main, run } from '../command.ts';
import { dialTo, program } from './ends.ts';
import { start } from './running.ts';

const lost = (socket: Socket): Promise<string> =>
  new Promise((resolve) => {
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
    socket.once('end', () => resolve('end'));
  });

test('wrong flags are explained', async () => {
  for (const [args, why] of [
    [[], /required option '--to <address>'/],
    [['--to', 'a:1'], /either --listen.* or --serve/],
    [['--to', 'a:1', '--listen', 'b:1', '--serve', 'c:1'], /either --listen.* or --serve/],
    [['--to', 'a:1', '--listen', 'b:1', '--allow', 'x'], /--allow is for --serve/],
    [['--to', 'nowhere', '--serve', 'b:1'], /address "nowhere"/],
    [['--to', 'a:1', '--serve', 'b:1', '--tls'], /--tls is for --listen/],
    [['--to', 'a:1', '--serve', 'b:1', '--cert', 'x'], /--cert needs --key/],
  ] as const) {
    const { code, errors } = await run('tunnel', ...args);
    expect(errors).toMatch(why);
    expect(code).toBe(2);
  }
});

test('SIGTERM drains, and metrics count', async () => {
  const echo = await program((socket) => socket.pipe(socket));
  const far = await start('--serve', '127.0.0.1:0', '--to', echo.address);
  const near = await start('--listen', '127.0.0.1:0', '--to', far.bound, '--metrics', '127.0.0.1:0');
  const socket = dialTo(near.bound);
  socket.write('one');
  await once(socket, 'data');
  const url = /http:\S+/.exec(near.lines.join('\n'))![0];
  const metrics = await text((await fetch(url)).body!);
  expect(metrics).toMatch(/^rdma_rpc_tunnel_connections_open 1$/m);
  expect(metrics).toMatch(/^rdma_rpc_tunnel_sent_bytes_total 3$/m);
  for (const each of [near, far]) each.child.kill('SIGTERM');
  while (!near.lines.some((line) => line.startsWith('SIGTERM'))) await once(near.child.stderr!, 'data');
  // The server accepts no new connection, but the open connection continues.
  expect(await lost(dialTo(near.bound))).toBe('ECONNREFUSED');
  socket.write('two');
  expect(String(((await once(socket, 'data')) as [Buffer])[0])).toBe('two');
  socket.end();
  expect(await lost(socket)).toBe('end');
  expect([await near.exit, await far.exit]).toEqual([0, 0]);
  await echo.close();
});

test('SIGTERM drains as soon as the tunnel has said that it listens', async () => {
  const atOnce = `
    const print = console.error;
    console.error = (line) => {
      print(line);
      if (line.startsWith('listening')) process.kill(process.pid, 'SIGTERM');
    };
  `;
  const preload = `data:text/javascript,${encodeURIComponent(atOnce)}`;
  const to = `unix:${join(tmpdir(), 'tunnel-to-nowhere')}`;
  const args = ['--import', preload, main, 'tunnel', '--listen', '127.0.0.1:0', '--to', to];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [errors, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  expect(errors).toMatch(/^listening on .*\nSIGTERM: /);
  expect(code).toBe(0);
});

test('a killed far end is a reset, and a restarted one serves again', async () => {
  const echo = await program((socket) => {
    socket.on('error', () => undefined);
    socket.pipe(socket);
  });
  // Nobody else can take this address while the far end is dead.
  const address = `unix:${join(tmpdir(), `tunnel-far-${process.pid}`)}`;
  const far = await start('--serve', address, '--to', echo.address);
  const near = await start('--listen', '127.0.0.1:0', '--to', far.bound);
  const socket = dialTo(near.bound);
  socket.write('one');
  await once(socket, 'data');
  far.child.kill('SIGKILL');
  expect(await lost(socket)).toBe('ECONNRESET');
  expect(await lost(dialTo(near.bound).on('connect', () => undefined))).toBe('ECONNRESET');
  const again = await start('--serve', address, '--to', echo.address);
  const second = dialTo(near.bound);
  second.write('two');
  expect(String(((await once(second, 'data')) as [Buffer])[0])).toBe('two');
  second.destroy();
  for (const each of [near, again]) each.child.kill('SIGTERM');
  expect([await near.exit, await again.exit]).toEqual([0, 0]);
  await near.closed;
  expect(near.lines.filter((line) => /^(connection lost|not connected): /.test(line))[0]).toMatch(
    /^connection lost: /,
  );
  await echo.close();
});
