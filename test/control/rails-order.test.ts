/**
 * Tests which devices a client tries with one server, in order, and which devices a server names in its
 * welcome.
 */
import { afterEach, expect, test, vi } from 'vitest';
import { replaceClock } from '../../runtime/clock.ts';
import { bytesOf } from '../../runtime/control/gids.ts';
import { moreAttaches, namedGids, shareMs, sidesTowards } from '../../runtime/control/rails.ts';
import type { VerbsDevice } from '../../runtime/native/native.ts';
import { device } from '../cli/scripted-machine.ts';
import { side } from './by-hand.ts';

let devices: VerbsDevice[] = [];
vi.mock('../../runtime/native/native.ts', async (original) => ({
  ...(await original<object>()),
  loadNative: () => ({ verbsDevices: () => ({ devices }) }),
}));

let nowMs = 0;
/** Gives this machine one device for each address: r0, r1 and so on. The answers before are outdated then. */
function has(...addresses: string[]): void {
  nowMs += 60_000;
  replaceClock(() => nowMs);
  devices = addresses.map((gid, number) => ({
    ...device,
    name: `r${number}`,
    whyNot: '',
    ports: [
      {
        number: 1,
        state: 'ACTIVE',
        linkLayer: 'InfiniBand',
        activeMtu: 4096,
        lid: 1,
        gids: [{ index: 0, gid, type: 'IB', interface: '' }],
      },
    ],
  }));
}
afterEach(() => replaceClock(undefined));

const tried = (peers: string[] | undefined, address?: string): (string | undefined)[] =>
  sidesTowards({ ...side, ...(address !== undefined && { address }) }, 'verbs', peers?.map(bytesOf)).map(
    ({ verbs }) => verbs.device,
  );

test('an older peer, which names no GIDs, gets the usual device alone', () => {
  has('fd00:1::1', 'fd00:2::1');
  expect(sidesTowards(side, 'verbs', undefined)).toEqual([side]);
});

test('a fabric without devices is tried once', () => {
  has('fd00:1::1', 'fd00:2::1');
  expect(sidesTowards(side, 'tcp', [bytesOf('fd00:1::2')])).toEqual([side]);
  expect(namedGids(side, ['shm', 'tcp'])).toBeUndefined();
});

test('a machine with one device tries it as ever', () => {
  has('fd00:1::1');
  expect(sidesTowards(side, 'verbs', [bytesOf('fd00:2::2')])).toEqual([side]);
});

test('the device in the network of the peer comes first, and the usual one keeps its options', () => {
  has('fd00:1::1', 'fd00:2::1', 'fd00:3::1');
  // The usual device has no name in the options: the sessions of this side share its context.
  expect(tried(['fd00:3::9'])).toEqual(['r2', undefined, 'r1']);
  expect(tried(['fd00:3::9', 'fd00:2::9'])).toEqual(['r1', 'r2', undefined]);
  expect(tried(['fd00:9::9'])).toEqual([undefined, 'r1', 'r2']);
  expect(tried([], 'fd00:2::1')).toEqual([undefined, 'r0', 'r2']);
});

test('at most four devices are tried, and a server takes an attach for each', () => {
  has(...Array.from({ length: 6 }, (_, number) => `fd00:${number}::1`));
  expect(tried(['fd00:5::9'])).toEqual(['r5', undefined, 'r1', 'r2']);
  expect(tried(['fd00:5::9'])).toHaveLength(1 + moreAttaches);
});

test('a welcome names at most eight GIDs', () => {
  has(...Array.from({ length: 12 }, (_, number) => `fd00:${number}::1`));
  const named = namedGids(side, ['verbs', 'tcp']);
  expect(named).toEqual(Array.from({ length: 8 }, (_, number) => bytesOf(`fd00:${number}::1`)));
});

test.each<[string, object, number, number | undefined]>([
  ['one device has its own limit', {}, 1, undefined],
  ['two devices share it', {}, 2, 2000],
  ['three devices share an own limit', { verbs: { connectTimeoutMs: 600 } }, 3, 200],
  ['one device leaves time of a short attempt', { attemptMs: 1000 }, 1, 800],
  ['two devices leave time of a short attempt', { attemptMs: 1000 }, 2, 400],
])('silent devices leave time for other fabrics: %s', (_, own, devices, limitMs) => {
  expect(shareMs({ ...side, ...own }, 'verbs', devices)).toBe(limitMs);
  expect(shareMs({ ...side, ...own }, 'tcp', devices)).toBeUndefined();
});
