/**
 * Tests clients that violate the rules. Such a client may post a request with a key that has ended, that
 * belongs to another client, or that does not permit the request. Such a request moves no byte. A violation
 * ends only the client's own queue pair for memory.
 */
import { createChannel, createClient, createServer, type Server } from 'rdma-rpc';
import { type Exposure, type Memories, memoryOf, type PeerMemory } from 'rdma-rpc/memory';
import { afterEach, describe, expect, test } from 'vitest';
import { Kind, type Message } from '../../runtime/memory/wire.ts';
import { socketPath } from '../runtime/world.ts';
import { TraderDefinition } from './gen/trade.rdma.ts';
import { Hostile } from './hostile.ts';
import { openMarket } from './memory-bed.ts';

/** Number of WRITEs that come late in each of the tests. A million of them were run once. */
const lateWrites = Number(process.env.RDMA_RPC_LATE_WRITES ?? 2000);
const ways = ['sim', 'shm', 'tcp'] as const;
const memoryBytes = 4096;

let closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.reverse()) await close();
  closing = [];
});

/** Connects a hostile client, and returns the server's memory for it. */
async function attacked(way: (typeof ways)[number]) {
  const market = await openMarket(way, { memory: { revokeMs: 1 } });
  closing.push(() => market.close());
  await market.channel.ready();
  let rounds = 0;
  const attacker = async () => {
    const hostile = await Hostile.connect(market.channel, rounds++);
    closing.push(() => hostile.close());
    await hostile.hello();
    let server!: PeerMemory;
    await market.trade({}, (_, memory) => {
      server = memory!;
      return {};
    });
    return { hostile, server };
  };
  return { ...market, attacker, ...(await attacker()) };
}
const pattern = (exposure: Exposure): void => void exposure.bytes.fill(0x5a);
const isIntact = (exposure: Exposure): boolean => exposure.bytes.every((byte) => byte === 0x5a);

describe.each(ways)('%s', (way) => {
  test.each([
    ['a WRITE without the right', { read: true }, 'write', 0],
    ['an atomic without the right', { read: true, write: true }, 'fetchAdd', 0],
    ['a READ without the right', { write: true }, 'read', 0],
    ['a WRITE beyond the end', { write: true }, 'write', memoryBytes - 7],
    ['a WRITE before the beginning', { write: true }, 'write', -1],
    ['a READ beyond the end', { read: true }, 'read', memoryBytes],
  ] as const)('%s moves nothing', async (_, rights, operation, offset) => {
    const { hostile, server, trade } = await attacked(way);
    const exposure = server.expose(new ArrayBuffer(memoryBytes), rights);
    pattern(exposure);
    const { value: key, position } = await hostile.open(exposure);
    hostile.local.bytes.fill(0);
    hostile.post(hostile[operation](key, position + offset));
    expect(await hostile.ended).toMatch(/queue pair has failed/);
    expect(hostile.completed).toBe(0);
    expect(hostile.local.bytes.every((byte) => byte === 0)).toBe(true);
    expect(isIntact(exposure)).toBe(true);
    expect(await exposure.ended).toMatch(/./);
    await trade({}, () => ({}));
  });

  test('a key of another client is worth nothing', async () => {
    const victim = await attacked(way);
    const thief = await attacked(way);
    const exposure = victim.server.expose(new ArrayBuffer(memoryBytes), { read: true, write: true });
    pattern(exposure);
    const { value: key, position } = await victim.hostile.open(exposure);
    thief.hostile.local.bytes.fill(0);
    thief.hostile.post(thief.hostile.write(key, position), thief.hostile.read(key, position));
    expect(await thief.hostile.ended).toMatch(/queue pair has failed/);
    expect(thief.hostile.local.bytes.every((byte) => byte === 0)).toBe(true);
    expect(isIntact(exposure)).toBe(true);
    // The rights of the memory's owner are unaffected.
    victim.hostile.post(victim.hostile.read(key, position));
    await expect.poll(() => victim.hostile.completed).toBe(1);
  });

  test(`${lateWrites} WRITEs after the end of the rights: none lands, and calls go on`, async () => {
    const { attacker, trade, ...first } = await attacked(way);
    let { hostile, server } = first;
    let posted = 0;
    for (;;) {
      const exposure = server.expose(new ArrayBuffer(memoryBytes), { write: true });
      const { value: key, position } = await hostile.open(exposure);
      // Some requests of a client are on their way while its memory is revoked. The client does not answer.
      const write = hostile.write(key, position, 64);
      hostile.local.bytes.fill(0xa5);
      hostile.post(...Array<typeof write>(16).fill(write));
      await exposure.close();
      pattern(exposure);
      const late = Array<typeof write>(200).fill(write);
      hostile.post(...late);
      posted += late.length;
      await hostile.ended;
      expect(isIntact(exposure)).toBe(true);
      if (posted >= lateWrites) break;
      await trade({}, () => ({}));
      ({ hostile, server } = await attacker());
      closing.pop();
    }
    await trade({}, () => ({}));
  }, 3_600_000);

  test.each<[string, Message[]]>([
    ['a message of an unknown kind', [{ kind: 9 as number as Kind, id: 0 }]],
    ['a second hello', [{ kind: Kind.hello, id: 0 }]],
    ['an answer that nobody has asked for', [{ kind: Kind.opened, id: 1, byteLength: 8 }]],
    ['memory taken back that was never opened', [{ kind: Kind.revoke, id: 1 }]],
    ['unknown rights', [{ kind: Kind.opened, id: 1, rights: 8 }]],
    ['a range beyond 2^53', [{ kind: Kind.written, id: 1, position: 2 ** 53 - 1, byteLength: 2 ** 53 - 1 }]],
  ])('%s ends the queue pair, and calls go on', async (_, messages) => {
    const { hostile, trade, server } = await attacked(way);
    for (const message of messages) hostile.queue.say(message);
    expect(await server.ended).toMatch(/^the peer /);
    await trade({}, () => ({}));
  });

  test('what it says about writes is checked', async () => {
    for (const lie of [{ byteLength: memoryBytes + 1 }, { position: memoryBytes, byteLength: 1 }]) {
      const { hostile, server } = await attacked(way);
      const exposure = server.expose(new ArrayBuffer(memoryBytes), { write: true });
      await hostile.open(exposure);
      hostile.queue.say({ kind: Kind.written, id: exposure.handle.id, ...lie });
      expect(await server.ended).toMatch(/beyond the end/);
    }
    const { hostile, server } = await attacked(way);
    const exposure = server.expose(new ArrayBuffer(memoryBytes), { read: true });
    hostile.queue.say({ kind: Kind.written, id: exposure.handle.id });
    expect(await server.ended).toMatch(/may not write/);
  });

  test('it may say nothing at all', async () => {
    const market = await openMarket(way);
    closing.push(() => market.close());
    await market.channel.ready();
    const hostile = await Hostile.connect(market.channel);
    closing.push(() => hostile.close());
    hostile.queue.say({ kind: Kind.open, id: 1 });
    expect(await hostile.ended).toMatch(/./);
    await market.trade({}, (_, memory) => {
      expect(memory).toBeUndefined();
      return {};
    });
  });
});

test('the memory of an honest client does not notice an attack on the same server', async () => {
  const server: Server = createServer();
  const memories: Memories = memoryOf(server);
  const seen: PeerMemory[] = [];
  server.add(TraderDefinition, {
    trade: (_, context) => {
      seen.push(memories.of(context)!);
      return {};
    },
  });
  const address = await server.listen(`unix:${socketPath()}`);
  closing.push(() => server.shutdown({ graceMs: 0 }));
  const [bad, good] = [createChannel(address), createChannel(address)];
  closing.push(() => Promise.all([bad.close(), good.close()]));
  await Promise.all([bad.ready(), good.ready()]);
  const [attacker, honest] = [await Hostile.connect(bad), await Hostile.connect(good)];
  closing.push(() => honest.close());
  await Promise.all([attacker.hello(), honest.hello()]);
  await createClient(TraderDefinition, bad).trade({});
  await createClient(TraderDefinition, good).trade({});
  const [toBad, toGood] = seen;
  const theirs = toBad!.expose(new ArrayBuffer(8), { read: true });
  const ours = toGood!.expose(new ArrayBuffer(8), { read: true });
  const given = await honest.open(ours);
  const taken = await attacker.open(theirs);
  attacker.post(attacker.write(taken.value, taken.position));
  await attacker.ended;
  honest.post(honest.read(given.value, given.position));
  await expect.poll(() => honest.completed).toBe(1);
  expect(toGood!.closed).toBe(false);
});
