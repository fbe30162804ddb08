/**
 * Tests that a server without `log` and `onSession` warns of the clients that it refuses. The server warns
 * only rarely, independent of the number of clients that it refuses.
 */
import { connect } from 'node:net';
import { createServer, type ServerOptions } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { RefusalWarnings } from '../../runtime/core/refusal-warnings.ts';
import { refusalSumMs } from '../../runtime/limits.ts';
import { caught, turn, until } from '../outcomes.ts';
import { ends, reach, unixAddress } from './ends.ts';

const warned: string[] = [];
beforeEach(() => {
  warned.length = 0;
  vi.spyOn(process, 'emitWarning').mockImplementation((text) => void warned.push(String(text)));
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

async function listening(options: ServerOptions, address = unixAddress()): Promise<string> {
  const server = createServer(options);
  ends.servers.push(server);
  return server.listen(address);
}
const once = { backoffMs: 600_000, backoffMaxMs: 600_000 };

describe('a server', () => {
  test.each<[string, ServerOptions, object, RegExp]>([
    ['allow', { allow: { uid: 54_321 } }, {}, /option allow of the server\): uid \d+/],
    ['authenticate', { authenticate: () => Promise.reject(new Error('no token')) }, {}, /no token/],
    ['sessionsMax', { sessionsMax: 1 }, {}, /sessionsMax/],
    ['no fabric in common', { fabric: 'tcp' }, { fabric: 'shm' }, /no fabric in common/],
  ])(
    'warns once for two clients, refused by %s, and sums up at its end',
    async (what, options, own, says) => {
      const address = await listening(options);
      if (what === 'sessionsMax') await reach(address).channel.ready();
      for (let client = 0; client < 2; ++client)
        await caught(reach(address, { ...once, ...own }).channel.ready());
      await until(() => warned.length > 0);
      expect(warned).toEqual([expect.stringMatching(/^a client was refused: handshake with unix:/)]);
      expect(warned[0]).toMatch(says);
      expect(warned[0]).toMatch(/\(option log gets a line for each\)$/);
      await ends.servers.pop()?.shutdown({ graceMs: 0 });
      expect(warned.slice(1)).toEqual([
        expect.stringMatching(/^1 more client was refused; the last: handshake/),
      ]);
    },
  );

  test.each<[string, ServerOptions]>([
    ['log', { log: () => undefined }],
    ['onSession', { onSession: () => undefined }],
  ])('with %s does not', async (_, options) => {
    const address = await listening({ allow: { uid: 54_321 }, ...options });
    await caught(reach(address, once).channel.ready());
    await turn();
    expect(warned).toEqual([]);
  });

  test('does not warn of a connection that only ends', async () => {
    const address = await listening({}, '127.0.0.1:0');
    const socket = connect(Number(address.split(':')[1]), '127.0.0.1').end();
    socket.resume();
    await new Promise((resolve) => socket.once('close', resolve));
    await turn();
    expect(warned).toEqual([]);
  });
});

test('a million refusals are a warning a minute, and one after a quiet minute is shown at once', () => {
  vi.useFakeTimers();
  const texts: string[] = [];
  const refusals = new RefusalWarnings((text) => texts.push(text));
  for (let client = 0; client < 1_000_001; ++client) refusals.add(`client ${client}\nforged`);
  expect(texts.splice(0)).toEqual([
    'a client was refused: client 0 forged (option log gets a line for each)',
  ]);
  vi.advanceTimersByTime(refusalSumMs);
  expect(texts.splice(0)).toEqual(['1000000 more clients were refused; the last: client 1000000 forged']);
  vi.advanceTimersByTime(refusalSumMs);
  expect(texts).toEqual([]);
  refusals.add('client x');
  expect(texts).toEqual(['a client was refused: client x (option log gets a line for each)']);
});
