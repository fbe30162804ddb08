/**
 * Tests PUT and GET in the way of HERD: over UC and UD that lose and duplicate packets, over RC, and with
 * hostile clients.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { OpenOptions } from 'rdma-rpc/verbs';
import { expect, test } from 'vitest';
import { HerdClient } from '../../examples/herd/client.ts';
import type { Ways } from '../../examples/herd/link.ts';
import { HerdServer } from '../../examples/herd/server.ts';
import {
  decodeRequest,
  encodeRequest,
  Operation,
  requestBytes,
  slotBytes,
  valueMax,
} from '../../examples/herd/slot.ts';
import { meetHere } from '../../examples/pingpong/meeting.ts';

interface Case {
  readonly device: string;
  readonly ways: Ways;
  readonly open?: OpenOptions;
}

async function withHerd(
  { device, ways, open = {} }: Case,
  clients: number,
  use: (clients: HerdClient[], server: HerdServer) => Promise<void>,
): Promise<void> {
  const server = new HerdServer({ device, ways, open, slotsEach: 4, clientsMax: clients });
  const made = Array.from(
    { length: clients },
    () => new HerdClient({ device, ways, open, slotsEach: 4, retryMs: 5 }),
  );
  for (const client of made) {
    const [here, there] = meetHere();
    await Promise.all([server.add((mine) => here.swap(mine)), client.connect((mine) => there.swap(mine))]);
  }
  const runs = server.run();
  try {
    await use(made, server);
  } finally {
    for (const each of [...made, server]) each[Symbol.dispose]();
    await runs;
  }
}

const lossy = { lossPpm: 100_000, duplicatePpm: 100_000, seed: 5 };

test.each<Case>([
  { device: 'sim', ways: 'uc+ud' },
  { device: 'sim', ways: 'uc+ud', open: lossy },
  { device: 'sim', ways: 'rc' },
  { device: 'shm', ways: 'rc' },
  { device: 'tcp', ways: 'rc' },
])('each client gets what was put: $device over $ways, $open', async (given) => {
  await withHerd(given, 3, async (clients, server) => {
    expect(await clients[0]!.get('none')).toBeUndefined();
    await Promise.all(
      clients.map(async (client, c) => {
        const many = Array.from({ length: 20 }, (_, i) => `${c}-${i}`);
        await Promise.all(many.map((key) => client.put(key, Buffer.from(key.repeat(10)))));
        const values = await Promise.all(many.map((key) => client.get(key)));
        expect(values.map((value) => Buffer.from(value!).toString())).toEqual(
          many.map((key) => key.repeat(10)),
        );
      }),
    );
    const other = await clients[1]!.get('0-7');
    expect(Buffer.from(other!).toString()).toBe('0-7'.repeat(10));
    const largest = Buffer.alloc(valueMax, 7);
    await clients[2]!.put('largest', largest);
    expect(Buffer.compare((await clients[0]!.get('largest'))!, largest)).toBe(0);
    const lost = given.open !== undefined;
    if (lost) expect(clients.reduce((sum, { repeated }) => sum + repeated, 0)).toBeGreaterThan(0);
    // A request is executed once, even if it arrives several times.
    expect(server.served).toBe(1 + 3 * 40 + 1 + 2);
  });
});

test('a server that is silent causes an error after some attempts', async () => {
  const given = { device: 'sim', ways: 'uc+ud', open: { lossPpm: 1_000_000 } } as const;
  const server = new HerdServer({ ...given, slotsEach: 2 });
  const client = new HerdClient({ ...given, slotsEach: 2, retryMs: 1, triesMax: 3 });
  const [here, there] = meetHere();
  await Promise.all([server.add((mine) => here.swap(mine)), client.connect((mine) => there.swap(mine))]);
  await expect(client.get('a')).rejects.toThrow(/has not answered 3 times/);
  for (const each of [client, server]) each[Symbol.dispose]();
});

test('random bytes in a slot are not a request', () => {
  const slot = new Uint8Array(slotBytes);
  const request = { operation: Operation.put, key: 'k', value: Uint8Array.of(1, 2, 3) };
  expect(encodeRequest(slot, 9, request)).toBe(slotBytes - requestBytes(request.value));
  expect(decodeRequest(slot)).toEqual(request);
  for (const [offset, byte] of [
    [6, 9],
    [6, 0],
    [8, 0xff],
  ] as const) {
    const wrong = slot.slice();
    wrong[slotBytes - offset] = byte;
    expect(decodeRequest(wrong)).toBeUndefined();
  }
});

test('shm gives the reason why it has no UC', () => {
  expect(() => new HerdServer({ device: 'shm', ways: 'uc+ud' })).toThrow(/shm has no UC.*over rc it works/);
});

test.each(['sim', 'shm'])('the program on %s', (device) => {
  const main = fileURLToPath(new URL('../../dist/examples/herd/main.js', import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, device, '500'], { encoding: 'utf8' });
  expect(status, stderr).toBe(0);
  expect(stdout).toMatch(
    /500 requests over (uc\+ud on sim|rc on shm): \d+ a second\n\d+ were written again; 0 answers were wrong\n/,
  );
});
