/**
 * Tests that the sockets of rdma-rpc behave as those of `node:net`. Every case of a generated matrix runs on
 * both, and the events must be the same. The events of `node:net` depend on timing and on the size of system
 * buffers. Therefore `node:net` first runs with several delays and all sizes. Then the events of our sockets
 * on each side must be among those that `node:net` has shown there for the same action, moment and actor, at
 * any size. The normal form of the events is described in ends.ts.
 */
import { beforeAll, expect, test } from 'vitest';
import { everything } from '../extent.ts';
import {
  allCases,
  type Case,
  converse,
  type Delays,
  type Library,
  nameOf,
  nodeNet,
  ours,
  type Seen,
} from './ends.ts';

const cases = allCases();
/** Cases with the same key share the events that `node:net` has shown. */
const keyOf = ({ action, moment, actor, allowHalfOpen }: Case): string =>
  `${action} ${moment} ${actor} ${allowHalfOpen}`;
const known = new Map<string, { client: Set<string>; server: Set<string> }>();
const delays: readonly Delays[] = [
  [0, 0],
  [0, 4],
  [4, 0],
];
/**
 * More bytes than any system buffers between two sockets on loopback; some systems can buffer the largest
 * size above. A write that is buffered as a whole succeeds, even if a reset follows. Our sockets buffer less
 * when other sockets of the process use the memory, and then the write fails. `node:net` fails the same way
 * with this size.
 */
const beyondSystemBytes = 24_000_000;
/** Limit for a conversation that does not end. */
const patienceMs = 60_000;
const atOnce = 16;

async function inParallel<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const worker = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await run(item);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

async function seenBy(library: Library, one: Case, delay?: Delays): Promise<Seen> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Seen>((resolve) => {
    timer = setTimeout(() => resolve({ client: 'does not end', server: 'does not end' }), patienceMs);
  });
  const seen = await Promise.race([converse(library, one, delay), late]);
  clearTimeout(timer);
  return seen;
}

/** Returns a line for each case in which a library shows events that `node:net` never shows. */
async function differences(library: Library, from: readonly Case[]): Promise<string[]> {
  const found: string[] = [];
  await inParallel(from, async (one) => {
    const seen = await seenBy(library, one);
    const sets = known.get(keyOf(one))!;
    for (const side of ['client', 'server'] as const) {
      if (sets[side].has(seen[side])) continue;
      found.push(`${nameOf(one)}: the ${side} saw ${seen[side]}; node:net: ${[...sets[side]].join(' or ')}`);
    }
  });
  return found;
}

async function learn(one: Case, delay: Delays): Promise<void> {
  const { client, server } = await seenBy(nodeNet, one, delay);
  const sets = known.get(keyOf(one)) ?? { client: new Set(), server: new Set() };
  known.set(keyOf(one), sets);
  sets.client.add(client);
  sets.server.add(server);
}

beforeAll(async () => {
  await inParallel(cases, async (one) => {
    for (const delay of one.autoDestroy ? delays : delays.slice(0, 1)) await learn(one, delay);
  });
  const resets = cases.filter(({ action, size }) => action === 'end, then reset' && size === 3_000_000);
  await inParallel(resets, (one) => learn({ ...one, size: beyondSystemBytes }, delays[0]!));
});

test('the matrix has hundreds of cases, and node:net ends all of them', () => {
  expect(cases.length).toBeGreaterThan(250);
  const all = [...known.values()].flatMap(({ client, server }) => [...client, ...server]);
  expect(all.filter((each) => /does not end|WRONG/.test(each))).toEqual([]);
});

// A brief run takes half of the cases on each fabric.
test.each([
  ['shm', 0],
  ['tcp', 1],
] as const)('the events are those of node:net: %s', async (fabric, half) => {
  const some = cases.filter((_, i) => everything || i % 2 === half);
  expect(await differences(ours(fabric), some)).toEqual([]);
});

test('the matrix finds a library that ends where it should reset', async () => {
  const wrong: Library = {
    pair: (options, onServer) =>
      nodeNet.pair(options, (socket) => {
        socket.resetAndDestroy = () => socket.destroy();
        onServer(socket);
      }),
  };
  // When the action comes later, Node 22 itself ends some sockets that should reset.
  const resets = cases.filter(
    ({ action, moment, actor, size }) =>
      action === 'reset' && moment === 'before' && actor === 'server' && size === 64,
  );
  expect(await differences(wrong, resets)).toHaveLength(resets.length);
});
