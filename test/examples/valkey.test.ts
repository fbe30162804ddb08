/**
 * Tests Valkey over RDMA. The client library of Valkey runs over our stream, against a peer that is scripted
 * byte by byte, and against peers that violate the protocol.
 */
import { once } from 'node:events';
import { Redis } from 'iovalkey';
import { Access, Completions, openDevice, RecvBatch, SendBatch, SendFlags, WcOpcode } from 'rdma-rpc/verbs';
import { afterEach, describe, expect, test } from 'vitest';
import { meetHere } from '../../examples/pingpong/meeting.ts';
import { rdmaConnector } from '../../examples/valkey/connector.ts';
import { decodeControl, encodeControl, Opcode } from '../../examples/valkey/control.ts';
import { openStream } from '../../examples/valkey/end.ts';
import { CommandReader, servePeer } from '../../examples/valkey/peer.ts';
import type { RdmaStream } from '../../examples/valkey/stream.ts';

const closing: { close(): void }[] = [];
afterEach(() => {
  for (const each of closing.splice(0)) each.close();
});

describe.each(['sim', 'shm', 'tcp'])('iovalkey on %s', (device) => {
  function client(bufferBytes: number): { redis: Redis; served: Promise<number>[] } {
    const values = new Map<string, Buffer>();
    const served: Promise<number>[] = [];
    const Connector = rdmaConnector(async () => {
      const [here, there] = meetHere();
      served.push(
        openStream(device, 'server', there, { bufferBytes }).then((stream) => servePeer(stream, values)),
      );
      return openStream(device, 'client', here, { bufferBytes });
    });
    const redis = new Redis({ Connector: Connector as never, enableReadyCheck: false });
    closing.push({ close: () => redis.disconnect() });
    return { redis, served };
  }

  test('thousands of pipelined commands through small buffers each get their answer', async () => {
    const { redis, served } = client(4096);
    const count = 3000;
    await Promise.all(Array.from({ length: count }, (_, i) => redis.set(`key ${i % 100}`, `value ${i}`)));
    const numbers = await Promise.all(Array.from({ length: count }, () => redis.incr('n')));
    expect(numbers).toEqual(Array.from({ length: count }, (_, i) => i + 1));
    expect(await redis.get('key 99')).toBe(`value ${count - 1}`);
    expect(await redis.get('none')).toBeNull();
    await expect(redis.call('flushall')).rejects.toThrow(/unknown command 'FLUSHALL'/);
    expect(await redis.quit()).toBe('OK');
    expect(await served[0]).toBeGreaterThanOrEqual(2 * count + 3);
  });

  test('values may be many times as long as the buffers', async () => {
    const { redis } = client(1024);
    const large = Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * 31) & 0xff));
    await redis.set('large', large);
    expect(Buffer.compare((await redis.getBuffer('large'))!, large)).toBe(0);
    redis.disconnect();
    await once(redis, 'end');
  });
});

/**
 * Makes a peer that is scripted byte by byte. The peer has its own queue pair, and uses none of the tested
 * code.
 */
async function scripted(role: 'client' | 'server', bufferBytes = 4096) {
  const device = openDevice('sim');
  const pd = device.allocPd();
  const cq = device.createCq();
  const qp = pd.createQp({ type: 'rc', cq, role: role === 'client' ? 'accept' : 'connect' });
  const mr = pd.regMr(pd.allocBuffer(1 << 18), Access.localWrite | Access.remoteWrite);
  closing.push(...[qp, mr, cq, pd, device]);
  const [here, there] = meetHere();
  // The receives for messages of 32 bytes begin at 4096. The first half of the memory is for the stream.
  for (let i = 0; i < 16; ++i) qp.postRecv(new RecvBatch(1).recv(i, mr, 4096 + 32 * i, 32));
  const opened = openStream('sim', role, here, { bufferBytes });
  const address = await there.swap(Buffer.from(qp.address).toString('hex'));
  const bytes = Uint8Array.from(Buffer.from(address, 'hex'));
  await (role === 'client' ? qp.accept(bytes) : qp.connect(bytes));
  const stream: RdmaStream = await opened;
  stream.on('error', () => undefined);
  const done = new Completions(1);
  /**
   * Resolves to the next completion of a receive: 32 bytes in hexadecimal, or the length of a part of the
   * stream.
   */
  const next = async (): Promise<string | number> => {
    while (cq.poll(done) === 0 || done.opcode(0) < WcOpcode.recv)
      await new Promise((resolve) => setImmediate(resolve));
    if (done.opcode(0) === WcOpcode.recvRdmaWithImm) return done.imm(0);
    const at = 4096 + 32 * done.wrId(0);
    return Buffer.from(mr.bytes.subarray(at, at + done.byteLength(0))).toString('hex');
  };
  const send = (hex: string): void => {
    mr.bytes.set(Buffer.from(hex, 'hex'), 6000);
    qp.post(new SendBatch(1).send(99, SendFlags.signaled).sge(mr, 6000, hex.length / 2));
  };
  const write = (text: string, addr: number, key: number, imm = text.length): void => {
    mr.bytes.set(Buffer.from(text), 7000);
    qp.post(new SendBatch(1).writeWithImm(99, addr, key, imm, SendFlags.signaled).sge(mr, 7000, text.length));
  };
  return { stream, qp, mr, next, send, write };
}

const zeros = (bytes: number): string => '00'.repeat(bytes);
const hex = (value: number, bytes: number): string => value.toString(16).padStart(2 * bytes, '0');
const register = (addr: number, length: number, key: number): string =>
  `0003${zeros(14)}${hex(addr, 8)}${hex(length, 4)}${hex(key, 4)}`;

test('each byte of the handshake, of a command and of its answer', async () => {
  const { stream, mr, next, send, write } = await scripted('client');
  expect(await next()).toBe(`0000${zeros(30)}`); // GetServerFeature
  expect(await next()).toBe(`0001${zeros(30)}`); // SetClientFeature
  const buffer = String(await next());
  expect(buffer).toMatch(/^0003(00){14}[0-9a-f]{16}00001000[0-9a-f]{8}$/);
  const [addr, key] = [Number.parseInt(buffer.slice(32, 48), 16), Number.parseInt(buffer.slice(56), 16)];
  // The client writes nothing before the server has announced its buffer. After that it writes at most 5
  // bytes, until the server announces the buffer again.
  stream.write('PING\r\n');
  send(`0000${zeros(30)}`);
  send(register(mr.addr, 5, mr.rkey));
  expect(await next()).toBe(5);
  expect(Buffer.from(mr.bytes.subarray(0, 5)).toString()).toBe('PING\r');
  send(`0002${zeros(30)}`); // Keepalive
  send(register(mr.addr + 100, 64, mr.rkey));
  expect(await next()).toBe(1);
  expect(Buffer.from(mr.bytes.subarray(100, 101)).toString()).toBe('\n');
  write('+PO', addr, key);
  write('NG\r\n', addr + 3, key);
  let text = '';
  for await (const chunk of stream) {
    text += String(chunk);
    if (text.length === 7) break;
  }
  expect(text).toBe('+PONG\r\n');
});

test('a long command goes in parts that every device can write', async () => {
  const { stream, mr, next, send } = await scripted('client');
  for (let i = 0; i < 3; ++i) await next();
  const command = Buffer.from(Array.from({ length: 150_000 }, (_, i) => (i * 7) & 0xff));
  stream.write(command);
  send(register(mr.addr + 65_536, 180_000, mr.rkey));
  expect([await next(), await next(), await next()]).toEqual([65_536, 65_536, 150_000 - 2 * 65_536]);
  expect(Buffer.compare(mr.bytes.subarray(65_536, 65_536 + 150_000), command)).toBe(0);
});

test('a server announces its buffer again when it is full and has been read', async () => {
  const { stream, mr, next, send, write } = await scripted('server', 4);
  stream.on('data', (chunk) => stream.write(String(chunk).toUpperCase()));
  const buffer = String(await next());
  const [addr, key] = [Number.parseInt(buffer.slice(32, 48), 16), Number.parseInt(buffer.slice(56), 16)];
  send(`0000${zeros(30)}`);
  expect(await next()).toBe(`0000${zeros(30)}`);
  send(register(mr.addr, 4000, mr.rkey));
  write('abcd', addr, key);
  expect([await next(), await next()].sort()).toEqual([buffer, 4].sort());
  write('ef', addr, key);
  expect(await next()).toBe(2);
  expect(Buffer.from(mr.bytes.subarray(0, 6)).toString()).toBe('ABCDEF');
});

test.each<[string, (peer: Awaited<ReturnType<typeof scripted>>, addr: number, key: number) => void, RegExp]>([
  ['an unknown opcode', ({ send }) => send(`0009${zeros(30)}`), /unknown opcode 9/],
  ['a control message that is too short', ({ send }) => send('0002'), /has 32 bytes, and this one has 2/],
  ['features that nobody knows', ({ send }) => send(`0001${zeros(29)}01`), /features that are unknown/],
  ['a buffer of no bytes', ({ send }) => send(register(1, 0, 1)), /cannot be/],
  ['an address of 64 bits', ({ send }) => send(`0003${zeros(14)}${'ff'.repeat(16)}`), /cannot be/],
  ['more bytes than it wrote', ({ write }, addr, key) => write('ab', addr, key, 5000), /past the buffer/],
])('%s ends the stream with an error', async (_, attack, why) => {
  const peer = await scripted('server');
  const buffer = String(await peer.next());
  const failed = once(peer.stream, 'error');
  attack(peer, Number.parseInt(buffer.slice(32, 48), 16), Number.parseInt(buffer.slice(56), 16));
  const [error] = (await failed) as [Error];
  expect(error.message).toMatch(why);
});

test('a peer that disconnects ends the stream', async () => {
  const { stream, qp } = await scripted('server');
  const closed = once(stream, 'close');
  qp.close();
  stream.resume();
  await closed;
  expect(stream.destroyed).toBe(true);
});

test('control messages are decoded as they were encoded', () => {
  const bytes = new Uint8Array(32);
  for (const message of [
    { opcode: Opcode.getServerFeature, select: 7, features: 2n ** 63n },
    { opcode: Opcode.keepalive },
    { opcode: Opcode.registerXferMemory, addr: 2 ** 52, length: 2 ** 32 - 1, key: 2 ** 31 },
  ] as const) {
    encodeControl(bytes, message);
    expect(decodeControl(bytes)).toEqual(message);
  }
});

test('commands may be cut at any byte', () => {
  const all = Buffer.from('*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$4\r\nPING\r\n');
  for (let cut = 0; cut <= all.byteLength; ++cut) {
    const requests = new CommandReader();
    const found = [...requests.take(all.subarray(0, cut)), ...requests.take(all.subarray(cut))];
    expect(found.map((words) => words.map(String))).toEqual([['GET', 'a'], ['PING']]);
  }
  expect(() => [...new CommandReader().take(Buffer.from('GET a\r\n'))]).toThrow(/is not RESP/);
});
