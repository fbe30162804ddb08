/**
 * Tests GET by READ. Values arrive complete although they are written at the same time. Values are complete
 * in any order of the steps of writers and readers, and for a writer in any process.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { createChannel, createServer, RpcError, Status } from 'rdma-rpc';
import { describe, expect, test } from 'vitest';
import { FarmClient } from '../../examples/farm-get/client.ts';
import { StoreDefinition } from '../../examples/farm-get/gen/farm.rdma.ts';
import {
  encodedKey,
  lineBytes,
  objectBytes,
  readObject,
  writeObject,
} from '../../examples/farm-get/object.ts';
import { type Farm, openFarm } from '../../examples/farm-get/service.ts';
import { Table } from '../../examples/farm-get/table.ts';

let sockets = 0;

async function withFarm(
  device: string,
  use: (client: FarmClient, farm: Farm) => Promise<void>,
): Promise<void> {
  using farm = openFarm({ device, slots: 64, valueMax: 300 });
  const server = createServer().add(StoreDefinition, farm.handlers);
  const address = await server.listen(`unix:/tmp/rdma-rpc-farm-test-${process.pid}-${++sockets}.sock`);
  const channel = createChannel(address);
  try {
    using client = await FarmClient.open(channel, device, { depth: 4 });
    await use(client, farm);
  } finally {
    await channel.close();
    await server.shutdown({ graceMs: 100 });
  }
}

/** Returns random numbers by mulberry32. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b_79f5) | 0;
    let x = Math.imul(state ^ (state >>> 15), 1 | state);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) % below;
  };
}

describe.each(['sim', 'shm', 'tcp'])('on %s', (device) => {
  test('a GET returns the value that was PUT, and nothing for other keys', async () => {
    await withFarm(device, async (client) => {
      expect(await client.get('a')).toBeUndefined();
      for (const text of ['one', 'another, longer value', '']) {
        await client.put('a', Buffer.from(text));
        expect(Buffer.from((await client.get('a'))!).toString()).toBe(text);
      }
      const keys = Array.from({ length: 24 }, (_, i) => `key ${i}`);
      for (const key of keys) await client.put(key, Buffer.from(`of ${key}`));
      const values = await Promise.all(keys.map((key) => client.get(key)));
      expect(values.map((value) => Buffer.from(value!).toString())).toEqual(keys.map((key) => `of ${key}`));
      expect(await client.get('key 99')).toBeUndefined();
      expect(client.torn).toBe(0);
    });
  });
});

test.each([1, 2, 3, 4, 5])('no GET returns parts of two PUTs: schedule %d', async (seed) => {
  await withFarm('sim', async (client, farm) => {
    const below = random(seed);
    const keys = ['a', 'b', 'c'];
    const textOf = (key: string, n: number): Buffer => Buffer.from(`${key}${n};`.repeat(30));
    /**
     * The state of each key: the PUT in progress, and the numbers of the last PUT that has ended and of the
     * last that has begun.
     */
    const state = new Map(
      keys.map((key) => [key, { steps: undefined as Generator<void> | undefined, ended: 0, begun: 0 }]),
    );
    for (const key of keys) for (const _ of farm.table.put(key, textOf(key, 0)));
    let checked = 0;
    const check = async (key: string): Promise<void> => {
      const { ended } = state.get(key)!;
      const value = Buffer.from((await client.get(key))!).toString();
      const n = Number(/^[abc](\d+);/.exec(value)?.[1]);
      expect(value).toBe(textOf(key, n).toString());
      // The value is at least as new as the last value that was written before the GET, and not newer than
      // the last PUT that has begun.
      expect(n).toBeGreaterThanOrEqual(ended);
      expect(n).toBeLessThanOrEqual(state.get(key)!.begun);
      ++checked;
    };
    const gets: Promise<void>[] = [];
    for (let i = 0; i < 3000; ++i) {
      const key = keys[below(keys.length)]!;
      const at = state.get(key)!;
      const action = below(16);
      if (action < 2) gets.push(check(key));
      else if (action < 4) await new Promise((resolve) => setImmediate(resolve));
      else if (at.steps === undefined) at.steps = farm.table.put(key, textOf(key, ++at.begun));
      else if (at.steps.next().done === true) {
        at.steps = undefined;
        at.ended = at.begun;
      }
    }
    for (const at of state.values()) for (const _ of at.steps ?? []);
    await Promise.all(gets);
    expect(checked).toBe(gets.length);
    // A schedule in which no READ meets a write would test nothing.
    expect(client.torn).toBeGreaterThan(10);
  });
});

test('a copy at any moment of a write is recognized as whole or torn, by versions and by checksum', () => {
  const object = new Uint8Array(objectBytes(200));
  const key = encodedKey('k');
  const [before, after] = [new Uint8Array(200).fill(1), new Uint8Array(150).fill(2)];
  for (const _ of writeObject(object, key, before));
  let torn = 0;
  const seen: string[] = [];
  const look = (copy: Uint8Array): void => {
    for (const linesAreWhole of [true, false]) {
      const found = readObject(copy, linesAreWhole);
      if (found === 'torn') ++torn;
      else if (typeof found === 'object') seen.push(Buffer.from(found.value).toString('hex'));
    }
  };
  look(object.slice());
  for (const _ of writeObject(object, key, after)) look(object.slice());
  look(object.slice());
  expect(new Set(seen)).toEqual(new Set([before, after].map((value) => Buffer.from(value).toString('hex'))));
  expect(torn).toBeGreaterThan(10);
});

test('a device that copies half a line is noticed by the checksum', () => {
  const old = new Uint8Array(objectBytes(100));
  for (const _ of writeObject(old, encodedKey('k'), new Uint8Array(100).fill(1)));
  const next = old.slice();
  for (const _ of writeObject(next, encodedKey('k'), new Uint8Array(100).fill(2)));
  // All versions are new, and the second half of the line is old.
  const copy = next.slice();
  copy.set(old.subarray(lineBytes + 32, 2 * lineBytes), lineBytes + 32);
  expect(readObject(copy, false)).toBe('torn');
  expect(readObject(copy, true)).not.toBe('torn');
});

test('a value that does not fit is refused', async () => {
  await withFarm('shm', async (client) => {
    for (const [key, bytes] of [
      ['', 1],
      ['k'.repeat(17), 1],
      ['k', 301],
    ] as const) {
      const error = await client.put(key, new Uint8Array(bytes)).catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(RpcError);
      expect(error).toMatchObject({ code: Status.INVALID_ARGUMENT });
    }
    await expect(client.get('k'.repeat(17))).rejects.toThrow(/1 to 16 bytes/);
  });
  const full = new Table(new Uint8Array(4 * objectBytes(10)), 10);
  for (const key of ['a', 'b', 'c', 'd']) for (const _ of full.put(key, new Uint8Array(1)));
  expect(() => full.put('e', new Uint8Array(1))).toThrow(/make the table larger/);
});

test.each(['sim', 'shm'])(
  'the program on %s finds no mixed value while a server overwrites all of them',
  (device) => {
    const main = fileURLToPath(new URL('../../dist/examples/farm-get/main.js', import.meta.url));
    const { status, stdout, stderr } = spawnSync(process.execPath, [main, device, '400'], {
      encoding: 'utf8',
    });
    expect(status, stderr).toBe(0);
    expect(stdout).toMatch(
      /^400 GETs of 1000 bytes on \w+: \d+ a second\n\d+ READs met a write.*; 0 values were mixed\n$/,
    );
  },
);
