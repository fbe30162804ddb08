/** Tests sessions that share the receives of a device, and sessions whose peer does not support that. */
import { leaseOf, stats } from 'rdma-rpc';
import { afterEach, expect, test } from 'vitest';
import { feature } from '../../runtime/control/frames.ts';
import * as limits from '../../runtime/limits.ts';
import { loadNative } from '../../runtime/native/native.ts';
import { wayWithout } from './older-peer.ts';
import {
  begun,
  clientDevice,
  endAll,
  over,
  pattern,
  type Reached,
  reach,
  same,
  sharedServer,
  until,
} from './pair.ts';

afterEach(endAll);
const server = sharedServer();

/** The bytes that a session with its own receives registers. */
const ownBytes =
  (limits.inflight.default + limits.receivesBesides) * (limits.slotBytes.default + limits.slotHeadBytes);
const shares = loadNative()
  .verbsDevices(0)
  .devices.some(({ name, capabilities }) => name === clientDevice && capabilities.maxSrqWr !== 0);

async function openMany(address: string, count: number): Promise<Reached[]> {
  const many = Array.from({ length: count }, () => reach(address));
  for (const { channel } of many) await channel.ready();
  return many;
}

/** Makes more small calls than a session may send at first, and a large one beside them. */
async function expectWorks({ client }: Reached, seed: number): Promise<void> {
  const payload = pattern(100_000, seed);
  const large = client.echo({ payload });
  const small = Array.from({ length: 60 }, (_, i) => client.echo({ number: seed + i }));
  expect((await Promise.all(small)).map(({ number }) => number)).toEqual(small.map((_, i) => seed + i));
  const answer = await large;
  expect(same(answer.payload, payload)).toBe(true);
  leaseOf(answer)?.release();
}

test.skipIf(!shares)(
  'each of many sessions registers little memory, and loses nothing when others end',
  async () => {
    const own = await openMany(server().address, 2);
    const before = stats('verbs').memoryBytes;
    const many = await openMany(server().address, 16);
    const each = (stats('verbs').memoryBytes - before) / many.length;
    expect(each).toBeLessThan(ownBytes / 2);
    expect(each).toBeGreaterThan(ownBytes / 10);
    const all = [...own, ...many];
    await Promise.all(all.map((each, i) => expectWorks(each, 100 * i)));
    const hanging = many.slice(0, 8).map(({ client }) => client.behave({ text: 'hang' }).catch(() => 'over'));
    await Promise.all(many.slice(0, 8).map(({ client }) => client.echo({})));
    for (const { channel } of many.slice(0, 8)) await channel.close();
    expect(new Set(await Promise.all(hanging))).toEqual(new Set(['over']));
    await Promise.all(all.slice(10).map((each, i) => expectWorks(each, 100 * i)));
    await until(
      () => server().report(),
      ({ sessions }) => sessions === 10,
    );
    const { stats: atServer } = await server().report();
    expect([stats('verbs').protocolErrors, atServer.protocolErrors]).toEqual([0, 0]);
  },
);

test('a peer that does not support the shared credit pool gets receives of its own', async () => {
  const way = begun(await wayWithout(feature.creditPool, server().address));
  const first = await openMany(way.address, 1);
  // While only one session is left, the context frees the memory of earlier tests.
  await until(
    () => stats('verbs').queuePairs,
    (count) => count === 1,
  );
  const before = stats('verbs').memoryBytes;
  const many = await openMany(way.address, 4);
  expect((stats('verbs').memoryBytes - before) / many.length).toBeGreaterThanOrEqual(ownBytes);
  // Adds a session that supports sharing. Each session uses the features that its own two sides support.
  many.push(...first, reach(server().address, over(clientDevice)));
  await Promise.all(many.map((each, i) => expectWorks(each, 100 * i)));
  expect(stats('verbs').protocolErrors).toBe(0);
});
