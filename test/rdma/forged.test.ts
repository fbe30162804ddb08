/**
 * What who forges packets can do, with all numbers right that pass on the wire: to a sealed session nothing
 * but to end it, and no application sees anything of what was forged. A forged packet has had its effect when
 * that session is gone, or when its device has answered it.
 */
import { randomBytes } from 'node:crypto';
import type { RpcError, SecurityLevel } from 'rdma-rpc';
import { beforeEach, describe, expect, test } from 'vitest';
import { same, until } from './pair.ts';
import { secured } from './secured.ts';
import {
  addresses,
  encodeReth,
  type Forged,
  Forger,
  HeldBack,
  Opcode,
  type Packet,
  type Reth,
  WireTap,
  whyNoTap,
} from './wire-tap.ts';

const why = process.env.RDMA_VM === 'rxe' ? whyNoTap() : 'packets are only made for RoCE';

/** Of the path between the two devices. */
const mtuBytes = 4096;
const callMs = 20_000;

const kept = (number: number): Buffer => Buffer.alloc(300_000, `kept-${number} `);
/** What the handler of `behave` waits for. */
let gate: Promise<void> = Promise.resolve();
/** The number of each request that it has had. */
const behaved: number[] = [];

const pair = secured({
  behave: async ({ number }) => {
    ++pair.log.started;
    behaved.push(number);
    await gate;
    return { payload: kept(number) };
  },
});
beforeEach(({ skip }) => {
  gate = Promise.resolve();
  behaved.splice(0);
  skip(why !== '', why);
});

const isSend = ({ opcode }: Packet): boolean =>
  opcode === Opcode.sendOnly || opcode === Opcode.sendAndInvalidate;

type Unplaced = Omit<Forged, 'queuePair' | 'sequence'>;

/**
 * A session of which all is known that passes on the wire, and another that must not notice anything. `from`:
 * whose packets are forged.
 */
async function watched(level: SecurityLevel, from: keyof typeof addresses) {
  const other = pair.reachBy(level);
  await other.client.echo({});
  const tap = await WireTap.open();
  pair.beside.push(tap);
  const forger = await Forger.open(from);
  pair.beside.push(forger);
  const one = pair.reachBy(level);
  const text = 'as it was meant';
  for (let number = 0; number < 4; ++number) await one.client.echo({ number, text });
  const isOwn = ({ source, port, isRequest }: Packet): boolean =>
    source === addresses[from] && port !== forger.port && isRequest;
  await until(
    () => tap.packets.filter((packet) => isOwn(packet) && packet.opcode === Opcode.sendOnly).length,
    (count) => count >= 4,
  );
  expect(tap.packets.filter(({ sound }) => !sound)).toEqual([]);
  // The last ones are those of this session.
  const { queuePair } = tap.packets.findLast(isOwn)!;
  /** What that side has sent to it. */
  const sent = (): Packet[] =>
    tap.packets.filter((packet) => isOwn(packet) && packet.queuePair === queuePair);
  expect([pair.accepted, pair.server.sessionCount]).toEqual([2, 2]);
  return {
    ...one,
    queuePair,
    sent,
    /** The place in the sequence behind all of them. Answers to a READ take one each. */
    next(): number {
      const last = sent().at(-1)!;
      const places = last.opcode === Opcode.readRequest ? Math.ceil(last.reth.length / mtuBytes) : 1;
      return last.sequence + places;
    },
    /** What passed before has been seen, since what the other session says now has. */
    async allSeen(): Promise<void> {
      const before = tap.packets.length;
      await other.client.echo({});
      await until(
        () => tap.packets.slice(before),
        (packets) => packets.some((packet) => isOwn(packet) && packet.queuePair !== queuePair),
      );
    },
    forge(packet: Unplaced, sequence: number): void {
      forger.send({ ...packet, queuePair, sequence });
    },
    forged: (): number => tap.packets.filter(({ port }) => port === forger.port).length,
    /** The same, and what the other side's device says to it. */
    async forgeOne(packet: Unplaced, sequence: number): Promise<Packet> {
      const before = tap.packets.length;
      forger.send({ ...packet, queuePair, sequence });
      const isIt = (each: Packet): boolean =>
        each.source !== addresses[from] && !each.isRequest && each.sequence === (sequence & 0xff_ffff);
      const reply = () => tap.packets.slice(before).find(isIt);
      await until(reply, (found) => found !== undefined);
      return reply()!;
    },
    isGone: () => pair.accepted > 2 || pair.server.sessionCount < 2,
    saw: (words: string) => tap.saw(words),
    async end() {
      // What was sent was as devices send it.
      expect(tap.packets.filter(({ sound }) => !sound)).toEqual([]);
      // The other session works, and nobody had to connect anew but the one.
      await other.client.echo({ text });
      expect(pair.accepted).toBeLessThanOrEqual(3);
    },
  };
}

describe('a forged message', () => {
  test.each<[string, (payload: Buffer) => Buffer, SecurityLevel]>([
    ['the bytes of one before', (payload) => payload, 'sealed'],
    ['bytes of its own', ({ byteLength }) => randomBytes(byteLength), 'sealed'],
    ['bytes that are no message', ({ byteLength }) => Buffer.alloc(byteLength, 0xff), 'bound'],
  ])('with %s ends a session that is $2 alone, and makes no call', async (_, bytes, level) => {
    const { sent, next, forge, forged, isGone, end, client } = await watched(level, 'client');
    const before = pair.log.started;
    const template = sent().findLast(({ opcode }) => opcode === Opcode.sendOnly)!;
    const payload = bytes(template.payload);
    let count = 0;
    await until(
      () => {
        // One at a time: what is on its way when it has had its effect would meet other queue pairs.
        if (count === forged()) {
          forge({ ...template, payload }, next());
          ++count;
        }
        return isGone();
      },
      (gone) => gone,
    );
    expect(pair.log.started).toBe(before);
    expect((await client.echo({ number: 9 })).number).toBe(9);
    await end();
  });
});

const junk = (bytes: number): Buffer => Buffer.alloc(bytes, 'junk');
const nobodysKey = 0x5eed_5eed;

const read = (memory: Reth): Unplaced => ({ opcode: Opcode.readRequest, payload: encodeReth(memory) });
const write = (memory: Reth): Unplaced => ({
  opcode: Opcode.writeOnly,
  payload: Buffer.concat([encodeReth(memory), junk(memory.length)]),
});

/** A session with a call whose handler waits, and has a large request that can be read meanwhile. */
async function waiting(level: SecurityLevel) {
  const session = await watched(level, 'server');
  // One buffer for all requests: one that is sent for the first time would be copied, and the copy's memory
  // given back before the handler begins.
  const request = kept(7);
  // Room for a response comes with a request from the second one on.
  for (let number = 0; number < 3; ++number) {
    const { payload } = await session.client.behave({ number, payload: request });
    expect(same(payload, kept(number))).toBe(true);
  }
  let open = (): void => undefined;
  gate = new Promise((resolve) => {
    open = resolve;
  });
  const before = pair.log.started;
  const answer = session.client.behave({ number: 7, payload: request }, { timeoutMs: callMs }).then(
    ({ payload }) => Buffer.from(payload),
    (error: RpcError) => error.message,
  );
  await until(
    () => pair.log.started,
    (count) => count > before,
  );
  await session.allSeen();
  return { ...session, answer, open };
}

/** Of the text of a request, not of the few bytes before and behind it. */
const isLargeRead = (packet: Packet): boolean =>
  packet.opcode === Opcode.readRequest && packet.reth.length >= mtuBytes;

/** The request of a waiting call was READ just now: `packet` is forged of the last of those READs. */
async function aimedAtRequest(level: SecurityLevel, packet: (memory: Reth) => Unplaced) {
  const session = await waiting(level);
  const { reth } = session.sent().findLast(isLargeRead)!;
  const at = session.next();
  const reply = await session.forgeOne(packet({ ...reth, length: 64 }), at);
  session.open();
  return { ...session, reply, answer: await session.answer };
}

/** In a sequence of 24 bits, which begins anywhere. */
const isBehind = (one: Packet, other: Packet): boolean =>
  one.sequence !== other.sequence && ((one.sequence - other.sequence) & 0xff_ffff) < 0x80_0000;

/**
 * Its response has been written, and the message that says so does not get there: `packet` is forged of the
 * last of those WRITEs, and then comes that message.
 */
async function aimedAtResponse(level: SecurityLevel, packet: (memory: Reth) => Unplaced) {
  const session = await waiting(level);
  const { sent, forge, forgeOne } = session;
  const before = sent().length;
  const held = new HeldBack(session.queuePair);
  pair.beside.push(held);
  session.open();
  const isWrite = ({ opcode }: Packet): boolean => opcode === Opcode.writeFirst;
  const passedOn = new Set<number>();
  /** Of what is held back. */
  const message = (): Packet | undefined => {
    const since = sent().slice(before);
    const write = since.find(isWrite);
    for (const each of since.filter(isSend)) {
      if (write !== undefined && isBehind(each, write)) return each;
      // Of something else, such as credits: the WRITE does not come before it.
      if (!passedOn.has(each.sequence)) forge(each, each.sequence);
      passedOn.add(each.sequence);
    }
    return undefined;
  };
  await until(message, (found) => found !== undefined);
  const last = message()!;
  const { reth } = sent().findLast(isWrite)!;
  const reply = await forgeOne(packet({ ...reth, length: 64 }), last.sequence);
  forge(last, last.sequence + 1);
  return { ...session, reply, answer: await session.answer };
}

/** What the first byte of an answer without data says: it was done, or the key is not for that. */
const syndrome = { done: 0, accessError: 0x62 };
const syndromeOf = ({ payload }: Packet): number =>
  (payload[0]! & 0x60) === 0 ? syndrome.done : payload[0]!;

/** The right bytes, or none. */
function expectUnharmed(answer: Buffer | string): void {
  expect(typeof answer === 'string' || same(answer, kept(7))).toBe(true);
}

describe('with a key of no memory', () => {
  test.each<[string, (memory: Reth) => Unplaced, SecurityLevel]>([
    ['a READ', read, 'sealed'],
    ['a WRITE', write, 'sealed'],
    ['a READ', read, 'bound'],
    ['a WRITE', write, 'bound'],
  ])('%s of a session that is $2 changes nothing that an application sees', async (_, packet, level) => {
    const { reply, answer, client, end } = await aimedAtRequest(level, (memory) =>
      packet({ ...memory, key: nobodysKey }),
    );
    expect(syndromeOf(reply)).toBe(syndrome.accessError);
    expectUnharmed(answer);
    const { payload } = await client.behave({ number: 8, payload: kept(8) });
    expect(same(payload, kept(8))).toBe(true);
    // Each call has had one handler, the one that was met among them.
    expect(behaved).toEqual([0, 1, 2, 7, 8]);
    await end();
  });
});

describe('of a sealed session', () => {
  test('a READ with the right key returns only encrypted bytes', async () => {
    const { reply, saw, answer, end } = await aimedAtRequest('sealed', read);
    expect(reply.payload.byteLength).toBeGreaterThanOrEqual(64);
    expect(saw('kept-')).toBe(false);
    expectUnharmed(answer);
    await end();
  });

  test('a WRITE with the right key is found: the call fails', async () => {
    const { reply, answer, end } = await aimedAtResponse('sealed', write);
    expect(syndromeOf(reply)).toBe(syndrome.done);
    expect(answer).toMatch(/a large message that it has not sealed/);
    await end();
  });
});

describe('of a session that is not sealed', () => {
  test('a READ with the right key returns the request to its sender', async () => {
    const { reply, end } = await aimedAtRequest('bound', read);
    expect(reply.payload.includes('kept-7')).toBe(true);
    await end();
  });

  test("a WRITE with the right key is taken for the server's", async () => {
    const { answer, end } = await aimedAtResponse('bound', write);
    expect(answer.includes('junkjunk')).toBe(true);
    await end();
  });
});
