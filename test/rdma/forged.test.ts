/**
 * Tests attacks by someone who forges packets and knows all numbers that pass on the wire. The attacker can
 * end a sealed session, but no application sees any forged byte. A test knows that a forged packet has had
 * its effect when the session is gone or when the device has answered the packet.
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

/** The MTU of the path between the two devices. */
const mtuBytes = 4096;
const callMs = 20_000;

const kept = (number: number): Buffer => Buffer.alloc(300_000, `kept-${number} `);
/** The handler of `behave` waits for this promise. */
let gate: Promise<void> = Promise.resolve();
/** The number of each request that the handler has received. */
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
 * Opens two sessions: one whose traffic on the wire is known, and another that must not notice anything. The
 * packets of side `from` are forged.
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
  // The last packets belong to this session.
  const { queuePair } = tap.packets.findLast(isOwn)!;
  /** Returns the packets that the side `from` has sent to this queue pair. */
  const sent = (): Packet[] =>
    tap.packets.filter((packet) => isOwn(packet) && packet.queuePair === queuePair);
  expect([pair.accepted, pair.server.sessionCount]).toEqual([2, 2]);
  return {
    ...one,
    queuePair,
    sent,
    /** Returns the next sequence number. An answer to a READ takes a number for each packet. */
    next(): number {
      const last = sent().at(-1)!;
      const places = last.opcode === Opcode.readRequest ? Math.ceil(last.reth.length / mtuBytes) : 1;
      return last.sequence + places;
    },
    /**
     * Resolves when all earlier packets have been seen. The method sends a packet on the other session and
     * waits until that packet is seen.
     */
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
    /** Forges a packet, and resolves to the answer of the other side's device. */
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
      // Devices must have sent only valid packets.
      expect(tap.packets.filter(({ sound }) => !sound)).toEqual([]);
      // The other session still works, and only the attacked session has connected again.
      await other.client.echo({ text });
      expect(pair.accepted).toBeLessThanOrEqual(3);
    },
  };
}

describe('a forged message', () => {
  test.each<[string, (payload: Buffer) => Buffer, SecurityLevel]>([
    ['the bytes of an earlier message', (payload) => payload, 'sealed'],
    ['random bytes', ({ byteLength }) => randomBytes(byteLength), 'sealed'],
    ['bytes that are not a message', ({ byteLength }) => Buffer.alloc(byteLength, 0xff), 'bound'],
  ])('with %s ends a session that is $2 alone, and makes no call', async (_, bytes, level) => {
    const { sent, next, forge, forged, isGone, end, client } = await watched(level, 'client');
    const before = pair.log.started;
    const template = sent().findLast(({ opcode }) => opcode === Opcode.sendOnly)!;
    const payload = bytes(template.payload);
    let count = 0;
    await until(
      () => {
        // Forges one packet at a time. After the first packet has had its effect, further packets would meet
        // other queue pairs.
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

/** Opens a session with a call whose handler waits. The call's large request can be READ meanwhile. */
async function waiting(level: SecurityLevel) {
  const session = await watched(level, 'server');
  // All requests use one buffer: a buffer that is sent for the first time is copied, and the memory of the
  // copy is freed before the handler begins.
  const request = kept(7);
  // From the second request on, a request announces memory for its response.
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

/** Returns whether this READ reads the request's content, and not the few bytes around it. */
const isLargeRead = (packet: Packet): boolean =>
  packet.opcode === Opcode.readRequest && packet.reth.length >= mtuBytes;

/** Forges `packet` from the last READ of the request of a waiting call. */
async function aimedAtRequest(level: SecurityLevel, packet: (memory: Reth) => Unplaced) {
  const session = await waiting(level);
  const { reth } = session.sent().findLast(isLargeRead)!;
  const at = session.next();
  const reply = await session.forgeOne(packet({ ...reth, length: 64 }), at);
  session.open();
  return { ...session, reply, answer: await session.answer };
}

/** Compares sequence numbers, which have 24 bits and may begin with any value. */
const isBehind = (one: Packet, other: Packet): boolean =>
  one.sequence !== other.sequence && ((one.sequence - other.sequence) & 0xff_ffff) < 0x80_0000;

/**
 * Lets the server write the response, but holds back the message that announces it. Then it forges `packet`
 * for the memory of the last of those WRITEs, and finally sends the held message.
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
  /** Returns the message that is held back, or undefined when it has not been sent yet. */
  const message = (): Packet | undefined => {
    const since = sent().slice(before);
    const write = since.find(isWrite);
    for (const each of since.filter(isSend)) {
      if (write !== undefined && isBehind(each, write)) return each;
      // This is another message, such as a message with credits, which no WRITE precedes.
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

/**
 * The first byte of an answer without data. The byte tells whether the operation was executed, or the key
 * does not permit the operation.
 */
const syndrome = { done: 0, accessError: 0x62 };
const syndromeOf = ({ payload }: Packet): number =>
  (payload[0]! & 0x60) === 0 ? syndrome.done : payload[0]!;

/** Checks that the answer has the right bytes, or is an error. */
function expectUnharmed(answer: Buffer | string): void {
  expect(typeof answer === 'string' || same(answer, kept(7))).toBe(true);
}

describe('a forged packet with a key of no memory', () => {
  test.each<[string, (memory: Reth) => Unplaced, SecurityLevel]>([
    ['READ', read, 'sealed'],
    ['WRITE', write, 'sealed'],
    ['READ', read, 'bound'],
    ['WRITE', write, 'bound'],
  ])('a %s on a session that is $2 changes nothing that an application sees', async (_, packet, level) => {
    const { reply, answer, client, end } = await aimedAtRequest(level, (memory) =>
      packet({ ...memory, key: nobodysKey }),
    );
    expect(syndromeOf(reply)).toBe(syndrome.accessError);
    expectUnharmed(answer);
    const { payload } = await client.behave({ number: 8, payload: kept(8) });
    expect(same(payload, kept(8))).toBe(true);
    // Each call has run one handler, even the attacked call.
    expect(behaved).toEqual([0, 1, 2, 7, 8]);
    await end();
  });
});

describe('a forged packet on a sealed session', () => {
  test('that READs with the right key gets only encrypted bytes', async () => {
    const { reply, saw, answer, end } = await aimedAtRequest('sealed', read);
    expect(reply.payload.byteLength).toBeGreaterThanOrEqual(64);
    expect(saw('kept-')).toBe(false);
    expectUnharmed(answer);
    await end();
  });

  test('that WRITEs with the right key is detected, and the call fails', async () => {
    const { reply, answer, end } = await aimedAtResponse('sealed', write);
    expect(syndromeOf(reply)).toBe(syndrome.done);
    expect(answer).toMatch(/a large message that it has not sealed/);
    await end();
  });
});

describe('a forged packet on a session that is not sealed', () => {
  test('that READs with the right key gets the request', async () => {
    const { reply, end } = await aimedAtRequest('bound', read);
    expect(reply.payload.includes('kept-7')).toBe(true);
    await end();
  });

  test('that WRITEs with the right key changes the response', async () => {
    const { answer, end } = await aimedAtResponse('bound', write);
    expect(answer.includes('junkjunk')).toBe(true);
    await end();
  });
});
