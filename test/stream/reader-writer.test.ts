/**
 * Tests the writer and the reader of a stream without a session between them. The tests pass parts and
 * credits by hand, in any order. Each run has a seed. The messages that come out must equal those that went
 * in.
 */
import { CodecError, type MessageType } from 'rdma-rpc/codec';
import { describe, expect, test } from 'vitest';
import { FabricContext } from '../../runtime/boundary/fabric-context.ts';
import { Scope } from '../../runtime/core/scopes.ts';
import { streamParts } from '../../runtime/limits.ts';
import { EvKind } from '../../runtime/native/native.ts';
import { IncomingParts } from '../../runtime/stream/incoming-parts.ts';
import { PartFlag, PartHeader, PartKind, partHeader } from '../../runtime/stream/part-header.ts';
import { Producer } from '../../runtime/stream/producer.ts';
import { type ReceivedPart, StreamReader } from '../../runtime/stream/stream-reader.ts';
import { type PartPort, StreamWriter } from '../../runtime/stream/stream-writer.ts';
import { FakeNative } from '../runtime/fake-native.ts';
import { Item, type ItemInit } from './gen/stream.rdma.ts';

/** Returns numbers that repeat with their seed (xorshift with 32 bits). */
function dice(seed: number): (below: number) => number {
  let state = seed * 2654435761 + 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

interface Sent {
  sequence: number;
  count: number;
  flags: number;
  bytes: Uint8Array;
}

/** A port with this number of credits, which keeps the parts that are sent. */
class Port implements PartPort {
  credits = 0;
  readonly sent: Sent[] = [];
  writable = 0;
  lastSent = 0;
  faults: unknown[] = [];
  sendPart(
    sequence: number,
    count: number,
    flags: number,
    type: MessageType<unknown, unknown>,
    message: unknown,
  ) {
    if (this.credits === 0) return false;
    const bytes = type.encode(message).slice();
    --this.credits;
    this.sent.push({ sequence, count, flags, bytes });
    return true;
  }
  onWritable() {
    ++this.writable;
  }
  onLastSent() {
    ++this.lastSent;
  }
  onWriteFault(error: unknown) {
    this.faults.push(error);
  }
}

const turnEnd = () => new Promise<void>((resolve) => setImmediate(resolve));

function unpack({ count, flags, bytes }: Sent): Item[] {
  if ((flags & PartFlag.packed) === 0) return count === 0 ? [] : [Item.decode(bytes)];
  const items: Item[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = bytes[at]! | (bytes[at + 1]! << 8);
    items.push(Item.decode(bytes.subarray(at + 2, at + 2 + length)));
    at += 2 + length;
  }
  expect(items).toHaveLength(count);
  return items;
}

function readerOf(consumed: number[], endsWithLast = true): StreamReader {
  const owner = {
    onFirstRead: () => undefined,
    onConsumed: ({ token }: ReceivedPart) => void consumed.push(token),
    onWanted: () => undefined,
    onUnwanted: () => undefined,
    onLeft: () => undefined,
    onEnd: () => undefined,
  };
  return new StreamReader(owner, endsWithLast);
}

const type = Item as MessageType<unknown, unknown>;

describe('from writer to reader', () => {
  test.each(Array.from({ length: 60 }, (_, seed) => seed))('seed %d', async (seed) => {
    const roll = dice(seed);
    const port = new Port();
    const writer = new StreamWriter(type, 200 + roll(400), port);
    const count = roll(400);
    const items = Array.from({ length: count }, (_, number): ItemInit => {
      const size = roll(20) === 0 ? 300 + roll(500) : roll(40);
      return { number, payload: new Uint8Array(size).fill(number) };
    });
    const source = async function* (): AsyncGenerator<ItemInit> {
      for (const item of items) {
        if (roll(10) === 0) await turnEnd();
        yield item;
      }
    };
    const failed = (error: unknown): never => expect.fail(String(error));
    const producer = new Producer({ onSourceError: failed, onMessageFault: failed }, writer, new Scope());
    port.onWritable = () => producer.resume();
    const consumed: number[] = [];
    const reader = readerOf(consumed);
    const got: number[] = [];
    const read = (async () => {
      for await (const item of reader) {
        const { number, payload } = item as Item;
        if (payload.some((byte) => byte !== (number & 0xff))) expect.fail('wrong bytes');
        got.push(number);
        if (roll(30) === 0) await turnEnd();
      }
    })();
    producer.start(roll(2) === 0 ? source() : items, 'items');
    // The network has at most `streamParts` outstanding, and delivers them in any order.
    const way: Sent[] = [];
    let given = 0;
    for (let idle = 0; port.lastSent === 0 || way.length > 0 || port.sent.length > 0; ++idle) {
      expect(idle).toBeLessThan(100_000);
      way.push(...port.sent.splice(0));
      const window = 1 + roll(streamParts);
      if (given - consumed.length < window && port.lastSent === 0) {
        ++given;
        ++port.credits;
        writer.onCredit();
      } else if (way.length > 0 && roll(3) > 0) {
        const [part] = way.splice(roll(way.length), 1);
        const last = (part!.flags & PartFlag.last) !== 0;
        expect(reader.arrive(part!.sequence, { messages: unpack(part!), last, token: part!.sequence })).toBe(
          true,
        );
      } else {
        await turnEnd();
      }
    }
    await read;
    expect(got).toEqual(items.map(({ number }) => number));
    expect(port.lastSent).toBe(1);
    expect(new Set(consumed).size).toBe(consumed.length);
    expect(reader.unread).toBe(0);
  });
});

describe('the writer', () => {
  test('packs the messages of one turn, and sends them at the end of the turn', async () => {
    const port = new Port();
    port.credits = 5;
    const writer = new StreamWriter(type, 1000, port);
    for (let number = 1; number <= 10; ++number) expect(writer.write({ number })).toBe(true);
    expect(port.sent).toHaveLength(0);
    await turnEnd();
    expect(port.sent.map(({ count }) => count)).toEqual([10]);
    writer.write({ number: 11 });
    await turnEnd();
    expect(port.sent.map(({ sequence, count }) => [sequence, count])).toEqual([
      [0, 10],
      [1, 1],
    ]);
  });

  test('packs messages of more than 255 bytes', async () => {
    const port = new Port();
    port.credits = 1;
    const writer = new StreamWriter(type, 2000, port);
    for (const bytes of [255, 256, 700]) writer.write({ number: bytes, payload: new Uint8Array(bytes) });
    await turnEnd();
    expect(port.sent.flatMap(unpack).map(({ number, payload }) => [number, payload.length])).toEqual([
      [255, 255],
      [256, 256],
      [700, 700],
    ]);
  });

  test('fills a part while there is no credit, holds one more message, and then requests a pause', async () => {
    const port = new Port();
    const writer = new StreamWriter(type, 100, port);
    let written = 1;
    while (writer.write({ number: written, text: 'x'.repeat(10) })) ++written;
    expect(written).toBeGreaterThan(3);
    expect(written).toBeLessThan(9);
    port.credits = 1;
    writer.onCredit();
    expect(port.writable).toBe(1);
    expect(port.sent.map(({ count }) => count)).toEqual([written - 1]);
    writer.end();
    expect(port.lastSent).toBe(0);
    port.credits = 1;
    writer.onCredit();
    expect(port.sent.at(-1)).toMatchObject({ sequence: 1, count: 1, flags: PartFlag.packed | PartFlag.last });
    expect(port.lastSent).toBe(1);
  });

  test('an empty part is sent first when it is requested, and only then', async () => {
    const port = new Port();
    const writer = new StreamWriter(type, 1000, port);
    writer.lead();
    writer.write({ number: 1 });
    writer.end();
    expect(port.sent).toHaveLength(0);
    port.credits = 2;
    writer.onCredit();
    expect(port.sent.map(({ sequence, count }) => [sequence, count])).toEqual([
      [0, 0],
      [1, 1],
    ]);
    const late = new StreamWriter(type, 1000, port);
    port.credits = 5;
    late.write({ number: 1 });
    await turnEnd();
    late.lead();
    expect(port.sent).toHaveLength(3);
  });

  test('a message that fills a part is sent alone, after the messages before it', () => {
    const port = new Port();
    port.credits = 3;
    const writer = new StreamWriter(type, 100, port);
    writer.write({ number: 1 });
    writer.write({ payload: new Uint8Array(500) });
    writer.end();
    expect(port.sent.map(({ count, flags }) => [count, flags])).toEqual([
      [1, PartFlag.packed],
      [1, 0],
      [0, PartFlag.last],
    ]);
  });

  test('a message that cannot be encoded is not sent, and does not end the stream', async () => {
    const port = new Port();
    port.credits = 2;
    const writer = new StreamWriter(type, 100, port);
    writer.write({ number: 1 });
    expect(() => writer.write({ number: 'x' })).toThrow(CodecError);
    expect(() => writer.write({ number: -1, payload: new Uint8Array(200) })).toThrow(CodecError);
    writer.write({ number: 2 });
    writer.end();
    expect(port.sent.flatMap(unpack).map(({ number }) => number)).toEqual([1, 2]);
  });
});

describe('the reader', () => {
  const part = (token: number, last = false, count = 1): ReceivedPart => ({
    messages: Array.from({ length: count }, (_, i) => token * 10 + i),
    last,
    token,
  });

  test.each([
    ['twice', 0, false],
    ['twice, not yet in its turn', 3, false],
    ['from before', 0xffff_ffff, false],
    ['in the window', 4, true],
  ] as const)('a part %s', (_, sequence, good) => {
    const reader = readerOf([]);
    expect(reader.arrive(0, part(0))).toBe(true);
    expect(reader.arrive(3, part(3))).toBe(true);
    expect(reader.arrive(sequence, part(sequence))).toBe(good);
  });

  test('reports a part when its last message has been read', async () => {
    const consumed: number[] = [];
    const reader = readerOf(consumed);
    reader.arrive(0, part(0, false, 2));
    await reader.next();
    expect(consumed).toEqual([]);
    await reader.next();
    expect(consumed).toEqual([0]);
    reader.arrive(1, part(1, false, 0));
    reader.arrive(2, part(2));
    expect(await reader.next()).toEqual({ value: 20, done: false });
    expect(consumed).toEqual([0, 1, 2]);
  });

  test('when it is left, received and later messages count as consumed', async () => {
    const consumed: number[] = [];
    const reader = readerOf(consumed);
    reader.arrive(0, part(0, false, 3));
    reader.arrive(2, part(2));
    await reader.next();
    await reader.return();
    expect(consumed).toEqual([0, 2]);
    reader.arrive(1, part(1));
    expect(consumed).toEqual([0, 2, 1]);
    expect(await reader.next()).toEqual({ value: undefined, done: true });
    expect(reader.unread).toBe(0);
  });

  test('messages after the last one are refused', async () => {
    const reader = readerOf([]);
    reader.arrive(0, part(0, true));
    await reader.next();
    expect(reader.arrive(1, part(1))).toBe(false);
  });
});

describe('a part header', () => {
  test('is read as it was written', () => {
    const header = new PartHeader();
    const bytes = partHeader(
      0xdead_beef,
      0xffff_fffe,
      65_535,
      PartKind.push,
      PartFlag.last | PartFlag.packed,
    );
    expect(header.read(bytes, 0, bytes.length)).toBe('');
    expect({ ...header }).toEqual({
      stream: 0xdead_beef,
      sequence: 0xffff_fffe,
      count: 65_535,
      kind: 2,
      flags: 3,
    });
  });

  test.each([
    ['cut off', [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], 'part without a header'],
    ['of stream 0', [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0], 'part of stream 0'],
    ['of no kind', [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 'part of an unknown kind'],
    ['of an unknown kind', [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0], 'part of an unknown kind'],
    ['with unknown flags', [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 8], 'part with unknown flags'],
    ['packed, of nothing', [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2], 'part with a wrong count'],
    ['of two, not packed', [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 2, 0], 'part with a wrong count'],
    ['of an open, packed', [1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 2], 'malformed open'],
    ['of an open with a sequence', [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0], 'malformed open'],
  ])('%s is refused', (_, bytes, why) => {
    expect(new PartHeader().read(Uint8Array.from(bytes), 0, bytes.length)).toBe(why);
  });
});

describe('messages of a part that arrives', () => {
  const one = Item.encode({ number: 7 });
  const packed = (...messages: Uint8Array[]) =>
    Uint8Array.from(messages.flatMap((each) => [each.length & 0xff, each.length >> 8, ...each]));
  const { packed: P } = PartFlag;

  test.each([
    ['two', 2, P, packed(one, one), [7, 7]],
    ['none', 0, 0, packed(), []],
    ['one alone', 1, 0, one, [7]],
    ['fewer than there should be', 3, P, packed(one, one), 'packed messages are cut off'],
    ['more than there should be', 1, P, packed(one, one), 'bytes behind the packed messages'],
    ['a length beyond the end', 1, P, Uint8Array.of(9, 0, 8, 7), 'a packed message is cut off'],
    ['half a length', 2, P, Uint8Array.from([...packed(one), 1]), 'packed messages are cut off'],
    ['bytes where there is no message', 0, 0, one, 'bytes in a part without messages'],
    ['a message that is none', 1, P, packed(Uint8Array.of(0xff)), 'test.stream.Item'],
  ] as const)('%s', (_, count, flags, message, expected) => {
    const native = new FakeNative();
    const context = new FabricContext('sim', native);
    const session = context.sessions.create({
      role: 'server',
      inflightMax: 1,
      messageMaxBytes: 1e6,
      peerMessageMaxBytes: 1e6,
    });
    const incoming = new IncomingParts(context, session, 'client');
    let result: unknown;
    native.onEvents(() => {
      expect(incoming.read(0)).toBe('');
      try {
        result = incoming
          .messages(0, Item as MessageType<unknown, never>)
          .map((item) => (item as Item).number);
      } catch (error) {
        result = (error as Error).message;
      }
    });
    const metadata = partHeader(1, 0, count, PartKind.push, flags).slice();
    native.deliver({ kind: EvKind.request, session, metadata, message: message as Uint8Array });
    if (typeof expected === 'string') expect(result).toContain(expected);
    else expect(result).toEqual(expected);
  });
});
