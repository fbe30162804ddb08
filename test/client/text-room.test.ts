/**
 * Tests that the bytes around the large values of a message pass through the scratch buffer. The native side
 * is scripted.
 */
import { beforeEach, describe, expect, test } from 'vitest';
import { blockMemory } from '../../runtime/boundary/outgoing/block-stamps.ts';
import { Reason } from '../../runtime/native/native.ts';
import { EchoMessage } from '../runtime/gen/echo.rdma.ts';
import { ClientBed } from './client-bed.ts';

let bed: ClientBed;
let native: ClientBed['native'];
const call: ClientBed['call'] = (request, options) => bed.call(request, options);

beforeEach(() => {
  bed = new ClientBed({ aligned: true });
  ({ native } = bed);
});

/**
 * Returns the bytes of an aligned message: its parts one after another, without the table and the gaps.
 */
const messageOf = (aligned: Uint8Array): Uint8Array => {
  const view = new DataView(aligned.buffer, aligned.byteOffset);
  const parts: Uint8Array[] = [];
  const count = view.getUint32(0, true);
  let at = 4 + 4 * count;
  for (let i = 0; i < count; i++) {
    const length = view.getUint32(4 + 4 * i, true);
    if (length === 0) continue;
    at = Math.ceil(at / 64) * 64;
    parts.push(aligned.subarray(at, at + length));
    at += length;
  }
  return new Uint8Array(Buffer.concat(parts));
};
/** Returns the gather entries as the receiver would store them. */
const laidOut = (gatherEntries: readonly Uint8Array[]): Uint8Array => {
  const aligned: number[] = [];
  for (const gatherEntry of gatherEntries) {
    while (aligned.length % 64 !== 0) aligned.push(0xcc);
    for (const byte of gatherEntry) aligned.push(byte);
  }
  return Uint8Array.from(aligned);
};
const inArena = (bytes: number, fill: number): Uint8Array =>
  new Uint8Array(blockMemory(native, native.allocBlock(bytes))).fill(fill);

describe('the bytes around their values', () => {
  const roomBytes = 4096;

  test.each([
    ['short: in the scratch buffer', 100, 0],
    ['longer than the room: in a block', roomBytes, 1],
  ])('%s', (_, textBytes, blocks) => {
    const request = { text: 'x'.repeat(textBytes), payload: inArena(50_000, 5), number: 5 };
    const before = native.blocks.size;
    const keep = native.allocBuffer.bind(native);
    let given = 0;
    native.allocBuffer = (bytes) => {
      given++;
      return keep(bytes);
    };
    call(request);
    expect(given).toBe(blocks);
    expect(messageOf(laidOut(native.submitted[0]!.gatherEntries))).toEqual(EchoMessage.encode(request));
    expect(native.blocks.size).toBe(before);
  });

  test('gaps are zeros, whatever the previous message contained', () => {
    const payload = inArena(50_000, 5);
    call({ text: 'x'.repeat(200), payload, number: 5 });
    call({ text: 'y', payload, number: 6 });
    const around = native.submitted[1]!.gatherEntries.filter((gatherEntry) => gatherEntry.byteLength < 1000);
    expect(around).toHaveLength(2);
    expect(Buffer.concat(around).includes('x')).toBe(false);
  });

  test('a message whose getter makes another large call stays whole, and so does that one', () => {
    const inner = { text: 'inner', payload: inArena(50_000, 1), number: 1 };
    const payload = inArena(50_000, 2);
    // Fields are read before anything is written. The elements of a list are written after the bytes that
    // precede them. A message is tried in a slot, measured, and encoded. Each time another call is made while
    // this call is being made.
    const element = Uint8Array.of(7);
    const parts = Object.defineProperty([element], 0, {
      get: () => {
        call(inner);
        return element;
      },
    });
    const outer = {
      text: 'outer',
      payload,
      parts,
    };
    call(outer);
    const messages = native.submitted.map((sent) => Buffer.from(messageOf(laidOut(sent.gatherEntries))));
    const wanted = [{ text: 'outer', payload, parts: [element] }, inner].map((each) =>
      EchoMessage.encode(each),
    );
    const counts = wanted.map((each) => messages.filter((message) => message.equals(each)).length);
    expect(counts[0]).toBe(1);
    expect(counts[1]).toBe(messages.length - 1);
  });

  const growths = [1, 2, 3, 4].flatMap((looks) =>
    [100, 3000, 3500, 3900, 5000, 20_000].map((bytes) => [looks, bytes] as const),
  );
  test.each(growths)(
    'a value that grows after %i looks, to %i bytes: all of it, or nothing is sent',
    async (looks, bytes) => {
      const values = Array.from({ length: 10 }, (_, i) => inArena(20_000, i));
      let looked = 0;
      const parts = Object.defineProperty([Uint8Array.of(), ...values], 0, {
        get: () => new Uint8Array(looked++ < looks ? 0 : bytes).fill(9),
      });
      const before = native.blocks.size;
      const outcome = call({ parts, text: 'text', number: 5 });
      const [sent] = native.submitted;
      expect(native.submitted.length).toBeLessThan(2);
      if (sent === undefined) {
        await expect(outcome).rejects.toThrow(/it became larger while it was being encoded/);
      } else {
        const message = EchoMessage.decode(messageOf(laidOut(sent.gatherEntries)));
        expect(message.text).toBe('text');
        expect([0, bytes]).toContain(message.parts[0]!.length);
        expect(message.parts.slice(1).map((part) => part.length)).toEqual(values.map((each) => each.length));
      }
      expect(native.blocks.size).toBe(before);
    },
  );

  test.each([
    ['that is refused', Reason.tooLarge],
    ['that throws', 0],
  ])('the room is free again after a message %s', async (_, refused) => {
    const payload = inArena(50_000, 5);
    let looks = 0;
    let bad = 0;
    const parts = Object.defineProperty([Uint8Array.of()], 0, {
      get: () => {
        if (++looks === bad) throw new Error('no element');
        return Uint8Array.of(1);
      },
    });
    call({ text: 'x', payload, parts });
    expect(native.submitted).toHaveLength(1);
    // The last read is made when the message is encoded into the room.
    if (refused === 0) bad = 2 * looks;
    native.refuseBulk = refused;
    await expect(call({ text: 'x', payload, parts })).rejects.toThrow(
      refused === 0 ? 'no element' : 'RESOURCE_EXHAUSTED',
    );
    expect(native.submitted).toHaveLength(1);
    native.refuseBulk = 0;
    const { size } = native.blocks;
    let given = 0;
    native.allocBuffer = () => {
      given++;
      return undefined;
    };
    call({ text: 'y', payload, number: 7 });
    expect([given, native.blocks.size]).toEqual([0, size]);
    expect(EchoMessage.decode(messageOf(laidOut(native.submitted.at(-1)!.gatherEntries)))).toMatchObject({
      text: 'y',
      number: 7,
    });
  });
});
