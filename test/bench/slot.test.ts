/**
 * Tests that the limit's hand-written protobuf is valid: protobufjs reads the output of that code, and that
 * code reads the output of protobufjs.
 */
import fc from 'fast-check';
import protobuf from 'protobufjs';
import { describe, expect, it } from 'vitest';
import { inlineMax, readMsg, writeMsg } from '../../bench/limit/slot.ts';

fc.configureGlobal({ seed: 20_261_121 });

const Msg = new protobuf.Type('Msg')
  .add(new protobuf.Field('payload', 1, 'bytes'))
  .add(new protobuf.Field('id', 2, 'uint64'));
new protobuf.Root().add(Msg);

const slot = 64;
const messages = fc.record({
  payload: fc.uint8Array({ maxLength: inlineMax }),
  id: fc.oneof(fc.maxSafeNat(), fc.nat({ max: 300 })),
});

describe('a slot of the limit', () => {
  it('contains what protobufjs would write, and stays within its 64 bytes', () => {
    fc.assert(
      fc.property(messages, (message) => {
        const memory = new Uint8Array(3 * 64);
        writeMsg(memory, slot, message);
        const encoded = memory.subarray(slot + 8, slot + 8 + memory[slot + 5]!);
        const { payload, id } = Msg.toObject(Msg.decode(encoded), { longs: Number, defaults: true });
        expect({ payload: Uint8Array.from(payload), id }).toEqual(message);
        expect(memory.subarray(2 * slot).every((byte) => byte === 0)).toBe(true);
      }),
    );
  });

  it('returns the written message, with a separate payload', () => {
    fc.assert(
      fc.property(messages, (message) => {
        const memory = new Uint8Array(2 * 64);
        writeMsg(memory, slot, message);
        const read = readMsg(memory, slot);
        memory.fill(0);
        expect(read).toEqual(message);
      }),
    );
  });

  it('refuses a field that is not its own', () => {
    const memory = new Uint8Array(2 * 64);
    memory[slot + 5] = 2;
    memory[slot + 8] = 3 << 3;
    expect(() => readMsg(memory, slot)).toThrow(/tag 24/);
  });
});
