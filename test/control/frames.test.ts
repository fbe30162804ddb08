/**
 * Tests the frames of the sideband connection. The tests check each field by its name. The tests also pass
 * arbitrary data to the connection that carries the frames.
 */
import { type Duplex, duplexPair } from 'node:stream';
import fc from 'fast-check';
import { Packr } from 'msgpackr';
import { describe, expect, test } from 'vitest';
import { checkFrame, controlText, type Frame, magic, version } from '../../runtime/control/frames.ts';
import { decodeFrame, encodeFrame, Link } from '../../runtime/control/link.ts';
import { controlFrameBytes } from '../../runtime/limits.ts';

const limits = { inflightMax: 256, messageMaxBytes: 65536, slotBytes: 8192 };
const hello = {
  type: 'hello',
  magic,
  version,
  features: 0,
  limits,
  fabrics: [{ name: 'shm', host: 'h' }],
  identity: 'me',
} as const;
const good: Frame[] = [
  hello,
  { type: 'welcome', version, features: 0, limits, fabrics: ['shm'], identity: 'me' },
  { type: 'refusal', code: 8, message: 'full' },
  { type: 'attach', fabric: 'shm', address: Uint8Array.of(1) },
  { type: 'attached', address: Uint8Array.of(1) },
  { type: 'unreachable', reason: 'r' },
  { type: 'ready' },
  { type: 'goaway', reason: 'r' },
  { type: 'goaway', reason: 'r', last: 5_000_000_000 },
  { type: 'leaving', calls: 7 },
  { type: 'serve', number: 0, address: Uint8Array.of(1) },
  { type: 'serving', number: 0, address: Uint8Array.of(1), proof: new Uint8Array(32) },
  { type: 'served', number: 3 },
  { type: 'unserve', number: 3, reason: 'r', code: 12 },
  { type: 'unserve', number: 3, reason: 'r', now: true },
  { type: 'bye', reason: 'r' },
];

describe('a frame', () => {
  test.each(good.map((frame) => [frame.type, frame] as const))(
    '%s goes through the wire form',
    (_, frame) => {
      const decoded = decodeFrame(encodeFrame(frame).subarray(4));
      expect(encodeFrame(decoded as Frame)).toEqual(encodeFrame(frame));
    },
  );

  test.each<[string, unknown, RegExp]>([
    ['no map', 5, /^not a map/],
    ['a list', [hello], /^not a map/],
    ['no type', {}, /^type: must be a string/],
    ['an unknown type', { type: 'hullo' }, /unknown type "hullo"/],
    ['a type of the prototype', { type: 'constructor' }, /unknown type "constructor"/],
    ['another protocol', { ...hello, magic: 'grpc' }, /hello: magic: not "rdma-rpc"/],
    ['a version that is none', { ...hello, version: 0 }, /hello: version: not an integer from 1/],
    ['a newest version that is none', { ...hello, versionMax: '2' }, /hello: versionMax: not an integer/],
    [
      'a version of a fabric that is none',
      { ...hello, fabrics: [{ name: 'shm', host: 'h', version: 1.5 }] },
      /fabrics: \[0\] version: not an integer/,
    ],
    ['no version', { ...hello, version: undefined }, /hello: version/],
    ['negative features', { ...hello, features: -1 }, /hello: features: not an integer/],
    ['half a call', { type: 'leaving', calls: 0.5 }, /leaving: calls: not an integer/],
    [
      'an end with a status that is none',
      { type: 'unserve', number: 0, reason: 'r', code: 17 },
      /unserve: code: not an integer from 1 to 16/,
    ],
    [
      'a session without a number',
      { type: 'serve', address: Uint8Array.of(1) },
      /serve: number: not an integer/,
    ],
    ['a session without an address', { type: 'serve', number: 0 }, /serve: address: not 1 to/],
    ['a last call below none', { type: 'goaway', reason: 'r', last: -1 }, /goaway: last: not an integer/],
    ['no limits', { ...hello, limits: null }, /hello: limits: not a map/],
    [
      'no calls in flight',
      { ...hello, limits: { ...limits, inflightMax: 0 } },
      /limits: inflightMax: not an integer from 1 to 4096/,
    ],
    ['too many in flight', { ...hello, limits: { ...limits, inflightMax: 4097 } }, /limits: inflightMax/],
    ['too many streams', { ...hello, limits: { ...limits, streamsMax: 513 } }, /limits: streamsMax/],
    [
      'slots of shm without end',
      { ...hello, limits: { ...limits, shmSlotBytes: 1 << 20 } },
      /limits: shmSlotBytes/,
    ],
    ['a fraction', { ...hello, limits: { ...limits, slotBytes: 8192.5 } }, /limits: slotBytes/],
    [
      'a size beyond 32 bits',
      { ...hello, limits: { ...limits, messageMaxBytes: 2 ** 32 } },
      /limits: messageMaxBytes/,
    ],
    ['a bigint', { ...hello, limits: { ...limits, messageMaxBytes: 65536n } }, /limits: messageMaxBytes/],
    [
      'too many fabrics',
      { ...hello, fabrics: Array(17).fill({ name: 'a', host: 'b' }) },
      /fabrics: not a list of at most 16/,
    ],
    ['a fabric that is a text', { ...hello, fabrics: ['shm'] }, /fabrics: \[0\] not a map/],
    ['a fabric without host', { ...hello, fabrics: [{ name: 'shm' }] }, /fabrics: \[0\] host/],
    [
      'a long identity',
      { ...hello, identity: 'x'.repeat(1025) },
      /identity: must be a string of at most 1024 bytes/,
    ],
    ['a code that is none', { type: 'refusal', code: 0, message: '' }, /refusal: code/],
    [
      'an empty address',
      { type: 'attach', fabric: 'shm', address: new Uint8Array(0) },
      /attach: address: not 1 to 512 bytes/,
    ],
    ['a long address', { type: 'attached', address: new Uint8Array(513) }, /attached: address/],
    ['an address that is a text', { type: 'attached', address: 'abc' }, /attached: address/],
    ['a field of the prototype', { type: 'bye', __proto__: { reason: 'r' } }, /bye: reason/],
  ])('with %s is refused by the name of the field', (_, value, reason) => {
    expect(checkFrame(value)).toMatch(reason);
  });

  test('may have unknown fields, which are ignored', () => {
    expect(checkFrame({ ...hello, later: 1 })).toMatchObject({ type: 'hello' });
  });

  test('arbitrary bytes are a frame or a text, never an exception (property)', () => {
    const packr = new Packr();
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc.anything().map((value) => {
        try {
          return new Uint8Array(packr.pack(value));
        } catch {
          return new Uint8Array(1);
        }
      }),
      fc.tuple(fc.constantFrom(...good), fc.nat(), fc.nat(255)).map(([frame, at, value]) => {
        const body = encodeFrame(frame).subarray(4);
        body[at % body.length] = value;
        return new Uint8Array(body);
      }),
    );
    fc.assert(
      fc.property(bytes, (body) => {
        const frame = decodeFrame(body);
        if (typeof frame !== 'string') expect(good.map((known) => known.type)).toContain(frame.type);
      }),
      { seed: 11, numRuns: 3000 },
    );
  });

  test('has texts that are cut to fit, between characters', () => {
    expect(controlText('short')).toBe('short');
    const cut = controlText('ä'.repeat(2000));
    expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(1024);
    expect(checkFrame({ type: 'bye', reason: cut })).toMatchObject({ type: 'bye' });
  });
});

describe('a link', () => {
  function pair(): { link: Link; far: Duplex; ended: string[] } {
    const [near, far] = duplexPair();
    const link = new Link(near);
    const ended: string[] = [];
    link.onEnd = (reason) => ended.push(reason);
    far.on('error', () => undefined);
    return { link, far, ended };
  }
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

  test('gives frames one by one, however they are cut', async () => {
    const { link, far } = pair();
    const bytes = Buffer.concat(good.map(encodeFrame));
    const got: string[] = [];
    link.onFrame = (frame) => got.push(frame.type);
    for (const byte of bytes) far.write(Buffer.of(byte));
    await settle();
    expect(got).toEqual(good.map((frame) => frame.type));
  });

  test('keeps a frame that arrives before it is requested', async () => {
    const { link, far } = pair();
    far.write(encodeFrame({ type: 'ready' }));
    await settle();
    expect(await link.receive()).toEqual({ type: 'ready' });
  });

  test.each<[string, Buffer, RegExp]>([
    ['a frame of no bytes', Buffer.alloc(4), /frame of 0 bytes/],
    ['a frame above the limit', Buffer.from([1, 0, 1, 0]), /65537 bytes, allowed are 1 to 65536/],
    ['HTTP', Buffer.from('GET / HTTP/1.1\r\n'), /not an rdma-rpc peer\?/],
    ['garbage in a frame', Buffer.from([1, 0, 0, 0, 0x81]), /not MessagePack/],
    ['a frame that is no map', Buffer.from([1, 0, 0, 0, 5]), /not a map/],
    [
      'five frames out of order',
      Buffer.concat(Array<Buffer>(5).fill(encodeFrame({ type: 'ready' }))),
      /out of order/,
    ],
  ])('ends with a reason at %s', async (_, bytes, reason) => {
    const { link, far, ended } = pair();
    far.write(bytes);
    await settle();
    expect(ended).toHaveLength(1);
    expect(ended[0]).toMatch(reason);
    await expect(
      Promise.resolve().then(async () => {
        for (;;) await link.receive();
      }),
    ).rejects.toThrow(reason);
  });

  test('ends once when the peer disconnects, and a waiting receive() ends with it', async () => {
    const { link, far, ended } = pair();
    const waiting = expect(link.receive()).rejects.toThrow(/peer closed/);
    far.end();
    await settle();
    await waiting;
    link.close('again');
    expect(ended).toEqual(['the peer closed the connection']);
  });

  test('its last frame arrives before the end', async () => {
    const { link, far } = pair();
    const peer = new Link(far);
    link.close('over', { type: 'bye', reason: 'over' });
    expect(await peer.receive()).toEqual({ type: 'bye', reason: 'over' });
    await settle();
    expect(peer.ended).toMatch(/closed/);
  });

  test('buffers no more than one frame', async () => {
    const { link, far, ended } = pair();
    far.write(Buffer.from([0, 0, 1, 0]));
    for (let i = 0; i < controlFrameBytes - 1; i += 1023)
      far.write(Buffer.alloc(Math.min(1023, controlFrameBytes - 1 - i)));
    await settle();
    expect(ended).toEqual([]);
    far.write(Buffer.alloc(1));
    await settle();
    expect(link.ended).toBeDefined();
  });
});
