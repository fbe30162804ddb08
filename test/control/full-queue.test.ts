/**
 * Tests a unix socket whose queue of connections to be accepted is full. The system then returns EAGAIN,
 * whereas TCP tries again by itself.
 */
import { closeSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createChannel, createClient, createServer } from 'rdma-rpc';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { loadNative } from '../../runtime/native/native.ts';
import { caught } from '../outcomes.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-queue-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test('is waited for, and the call succeeds', async () => {
  const path = join(folder, 's');
  await using server = createServer({ fabric: 'shm', log: () => undefined }).add(EchoDefinition, {
    echo: (request) => request,
  });
  const address = await server.listen(`unix:${path}`);
  await using channel = createChannel(address, { fabric: 'shm' });
  await using other = createChannel(address, { fabric: 'shm', connectTimeoutMs: 1 });
  // The server accepts no connection before this iteration of the event loop has ended.
  const queued: number[] = [];
  for (let fd = 0; fd >= 0; ) {
    fd = loadNative().dialUnix(path, false);
    if (fd >= 0) queued.push(fd);
  }
  const answer = createClient(EchoDefinition, channel).echo({ number: 7 });
  const late = caught(createClient(EchoDefinition, other).echo({}));
  await Promise.resolve();
  expect((await answer).number).toBe(7);
  expect(String(await late)).toMatch(/no answer within 1 ms \(option connectTimeoutMs of the channel\)/);
  for (const fd of queued) closeSync(fd);
});
