/**
 * Sockets behave as those of `node:net`: every case of a generated matrix runs on both, and the events are
 * the same. What `node:net` shows depends on timing and on how much the system holds, so it runs with several
 * delays and all sizes, and ours must show, for each side, what `node:net` has shown for that action, moment
 * and side at some size. The normal form of the events is described in ends.ts.
 */
import { beforeAll, expect, test } from 'vitest';
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
/** Cases with the same key share what `node:net` has shown. */
const keyOf = ({ action, moment, actor, allowHalfOpen }: Case): string =>
  `${action} ${moment} ${actor} ${allowHalfOpen}`;
const known = new Map<string, { client: Set<string>; server: Set<string> }>();
const delays: readonly Delays[] = [
  [0, 0],
  [0, 4],
  [4, 0],
];
/**
 * More than any system holds between two sockets on loopback; some hold all of the largest size. A write that
 * the system holds as a whole succeeds, even if a reset follows. Ours holds less when other sockets of the
 * process use its memory, and then the write fails: `node:net` shows that with this size.
 */
const beyondSystemBytes = 24_000_000;
/** For conversations that do not end. */
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

/** Returns what a library shows that `node:net` does not. */
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

test.each(['shm', 'tcp'] as const)('the events are those of node:net: %s', async (fabric) => {
  expect(await differences(ours(fabric), cases)).toEqual([]);
});

test('a library that ends where it should reset is found', async () => {
  const wrong: Library = {
    pair: (options, onServer) =>
      nodeNet.pair(options, (socket) => {
        socket.resetAndDestroy = () => socket.destroy();
        onServer(socket);
      }),
  };
  // In later moments Node 22 itself ends some sockets that should reset.
  const resets = cases.filter(
    ({ action, moment, actor, size }) =>
      action === 'reset' && moment === 'before' && actor === 'server' && size === 64,
  );
  expect(await differences(wrong, resets)).toHaveLength(resets.length);
});
