/**
 * Tests that test/native/wire.ts reads and writes the golden frames that the native tests
 * (native/test/session/wire_test.cc) also read.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  buildFrame,
  callGeneration,
  callSlot,
  callWord,
  type Exposed,
  type Frame,
  parseFrame,
} from './wire.ts';

const lines = readFileSync(new URL('../golden/frames.txt', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => {
    const [kind = '', name = '', hex = '', ...rest] = line.split(' ');
    return { kind, name, bytes: new Uint8Array(Buffer.from(hex === '-' ? '' : hex, 'hex')), rest };
  });

const bytesOf = (hex: string | undefined) => new Uint8Array(Buffer.from(hex ?? '', 'hex'));

function exposedOf(text: string | undefined): Exposed[] {
  if (text === undefined) return [];
  return text.split(',').map((item) => {
    const [address = '', length, key] = item.split(':');
    return { address: BigInt(`0x${address}`), length: Number(length), key: Number(key) };
  });
}

function frameOf(fields: readonly string[]): Frame {
  const field = new Map(fields.map((text) => text.split('=', 2) as [string, string]));
  const number = (name: string) => Number(field.get(name) ?? 0);
  return {
    type: number('type'),
    credits: number('credits'),
    call: number('call'),
    method: number('method'),
    timeoutUs: number('timeout'),
    notRun: (number('flags') & 16) !== 0,
    lasting: (number('flags') & 32) !== 0,
    part: (number('flags') & 64) !== 0,
    replyBuffer: exposedOf(field.get('reply_buffer'))[0],
    metadata: bytesOf(field.get('metadata')),
    gatherEntries: exposedOf(field.get('gather_entries')),
    aligned: (number('flags') & 128) !== 0,
    total: number('total'),
    message: bytesOf(field.get('message')),
  };
}

describe('the wire', () => {
  const valid = lines.filter(({ kind }) => kind === 'frame');
  const bad = lines.filter(({ kind }) => kind === 'bad');

  test('has golden frames of both kinds', () => {
    expect(valid.length).toBeGreaterThanOrEqual(20);
    expect(bad.length).toBeGreaterThanOrEqual(50);
  });

  test.each(valid)('reads $name', ({ bytes, rest }) => {
    expect(parseFrame(bytes)).toEqual(frameOf(rest));
  });

  test.each(valid)('writes $name', ({ bytes, rest }) => {
    expect(Buffer.from(buildFrame(frameOf(rest))).toString('hex')).toBe(Buffer.from(bytes).toString('hex'));
  });

  test.each(bad)('refuses $name', ({ bytes, rest }) => {
    expect(parseFrame(bytes)).toBe(rest.join(' '));
  });

  test('reads or refuses every truncation without throwing', () => {
    for (const { bytes } of lines) {
      for (let length = 0; length <= bytes.length; length += 1) {
        expect(['string', 'object']).toContain(typeof parseFrame(bytes.slice(0, length)));
      }
    }
  });

  test('a call word holds a slot and a generation', () => {
    expect(callWord(4095, 0xfffff)).toBe(0xffffffff);
    expect(callSlot(callWord(7, 0xabcde))).toBe(7);
    expect(callGeneration(callWord(7, 0xabcde))).toBe(0xabcde);
  });
});
