/**
 * Reads the wire of the guest and sends forged RoCE packets, for tests of the protection of a session.
 * tcpdump reads the wire. A raw socket writes the packets, because RoCEv2 is UDP and its checksum has no key.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { crc32 } from 'node:zlib';
import { whyNot } from '../needs.ts';

const rocePort = 4791;
/** The network interface of the client's device (test/rdma-vm/guest.sh). */
const wire = 'v0';
export const addresses = { client: '10.77.0.1', server: '10.77.0.2' } as const;

/** This is longer than any packet on the wire. */
const packetBytesMax = 16 * 1024;
/** The buffer for packets that tcpdump has not read yet: several times the largest message of a test. */
const roomKiB = 32 * 1024;

/** The UDP source port of forged packets; no device uses it. */
const forgedPort = 999;

const ipBytes = 20;
const udpBytes = 8;
const bthBytes = 12;
const icrcBytes = 4;
const etherBytes = 14;
const pcapHeadBytes = 24;
const recordHeadBytes = 16;

/** The opcodes of reliable connections. */
export const Opcode = {
  sendOnly: 0x04,
  writeFirst: 0x06,
  writeOnly: 0x0a,
  readRequest: 0x0c,
  firstAnswer: 0x0d,
  lastAnswer: 0x12,
  sendAndInvalidate: 0x17,
} as const;

/** The memory that a READ, or the first packet of a WRITE, addresses. */
export interface Reth {
  readonly address: bigint;
  readonly key: number;
  readonly length: number;
}
const rethBytes = 16;

export function encodeReth({ address, key, length }: Reth): Buffer {
  const reth = Buffer.alloc(rethBytes);
  reth.writeBigUInt64BE(address);
  reth.writeUInt32BE(key, 8);
  reth.writeUInt32BE(length, 12);
  return reth;
}

/** Returns the reason why the wire cannot be read here, or "" when it can. */
export function whyNoTap(): string {
  if (process.env.RDMA_VM === undefined) return 'the wire of a NIC cannot be looked at from here';
  return [whyNot('sniffer'), whyNot('strangers')].filter((why) => why !== '').join('; ');
}

/**
 * Returns the invariant checksum of an IP packet that does not contain it yet. The checksum covers all bytes
 * that no router changes.
 */
function icrcOf(packet: Buffer): number {
  const masked = Buffer.concat([Buffer.alloc(8, 0xff), packet]);
  // Bytes that routers may change: type of service, time to live, both checksums, and the reserved byte
  // beside the queue pair number.
  for (const [at, bytes] of [
    [1, 1],
    [8, 1],
    [10, 2],
    [ipBytes + 6, 2],
    [ipBytes + udpBytes + 4, 1],
  ] as const)
    masked.fill(0xff, 8 + at, 8 + at + bytes);
  return crc32(masked);
}

/** A RoCE packet that was seen on the wire. */
export class Packet {
  readonly source: string;
  /** The UDP source port, by which devices and forgers can be distinguished. */
  readonly port: number;
  readonly opcode: number;
  /** The number of the queue pair that receives the packet. */
  readonly queuePair: number;
  readonly sequence: number;
  /** The flags byte of the header, which also contains the length of the padding. */
  readonly flags: number;
  /** The bytes after the base transport header. */
  readonly payload: Buffer;
  /** True when the checksum is the one that icrcOf() returns. */
  readonly sound: boolean;

  constructor(ip: Buffer) {
    const bth = ip.subarray(ipBytes + udpBytes);
    this.source = [...ip.subarray(12, 16)].join('.');
    this.port = ip.readUInt16BE(ipBytes);
    this.opcode = bth[0]!;
    this.flags = bth[1]!;
    this.queuePair = bth.readUIntBE(5, 3);
    this.sequence = bth.readUIntBE(9, 3);
    this.payload = Buffer.from(bth.subarray(bthBytes, -icrcBytes));
    this.sound = icrcOf(ip.subarray(0, -icrcBytes)) === ip.readUInt32LE(ip.byteLength - icrcBytes);
  }

  /** Returns the address header of a READ, or of the first packet of a WRITE. */
  get reth(): Reth {
    const { payload } = this;
    const [key, length] = [payload.readUInt32BE(8), payload.readUInt32BE(12)];
    return { address: payload.readBigUInt64BE(), key, length };
  }

  /**
   * Returns true when the packet is a request, which has a sequence number of its own. An answer has the
   * number of its request.
   */
  get isRequest(): boolean {
    return this.opcode < Opcode.firstAnswer || this.opcode > Opcode.lastAnswer;
  }
}

/** Resolves when the program prints `words`. Rejects with its output when it ends. */
function said(program: ChildProcess, by: Readable, words: string): Promise<void> {
  let all = '';
  return new Promise((resolve, reject) => {
    by.on('data', (text) => {
      all += String(text);
      if (all.includes(words)) resolve();
    });
    const ended = () => reject(new Error(`${program.spawnfile} has ended: ${all}`));
    program.once('error', ended).once('exit', ended);
  });
}

export class WireTap {
  /** The RoCE packets so far, in order. */
  readonly packets: Packet[] = [];
  readonly #program: ChildProcess;
  readonly #all: Buffer[] = [];
  /** Output of tcpdump (in pcap format) that has no complete record yet. */
  #bytes: Buffer = Buffer.alloc(0);
  /** The bytes to skip; the first of them is the header of the file. */
  #skip = pcapHeadBytes;

  private constructor(program: ChildProcess) {
    this.#program = program;
    program.stdout!.on('data', (bytes: Buffer) => this.#take(bytes));
  }

  static async open(): Promise<WireTap> {
    // In this mode the kernel reserves room of the maximum length for each packet; with tcpdump's defaults
    // the buffer would hold eight packets.
    const room = ['-s', String(packetBytesMax), '-B', String(roomKiB)];
    const program = spawn('tcpdump', ['-i', wire, '-U', '--immediate-mode', ...room, '-w', '-'], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const tap = new WireTap(program);
    await said(program, program.stderr!, 'listening on');
    return tap;
  }

  /** Returns whether one packet contains this text. */
  saw(text: string): boolean {
    return this.#all.some((packet) => packet.includes(text));
  }

  /** Rejects when tcpdump has missed packets, because the test could then draw wrong conclusions. */
  async close(): Promise<void> {
    let said = '';
    this.#program.stderr!.on('data', (text) => {
      said += String(text);
    });
    const closed = once(this.#program, 'close');
    this.#program.kill();
    await closed;
    if (!/^0 packets dropped by kernel$/m.test(said)) throw new Error(`tcpdump has missed packets: ${said}`);
  }

  #take(bytes: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    while (this.#bytes.byteLength >= this.#skip + recordHeadBytes) {
      const from = this.#skip + recordHeadBytes;
      const end = from + this.#bytes.readUInt32LE(this.#skip + 8);
      if (this.#bytes.byteLength < end) return;
      this.#record(Buffer.from(this.#bytes.subarray(from, end)));
      this.#bytes = this.#bytes.subarray(end);
      this.#skip = 0;
    }
  }

  #record(frame: Buffer): void {
    this.#all.push(frame);
    const ip = frame.subarray(etherBytes);
    const isRoce =
      frame.readUInt16BE(12) === 0x0800 && ip[9] === 17 && ip.readUInt16BE(ipBytes + 2) === rocePort;
    if (isRoce) this.packets.push(new Packet(ip.subarray(0, ip.readUInt16BE(2))));
  }
}

/** Throws an error with the command's output. */
function run(...[command, ...args]: [string, ...string[]]): void {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr.trim()}`);
}

/**
 * Drops the messages (SENDs) for a queue pair of the client's device, as an attacker who controls a switch
 * can. A tap still sees the dropped messages. Forged messages pass.
 */
export class HeldBack {
  constructor(queuePair: number) {
    const ingress = ['dev', wire, 'ingress', 'protocol', 'ip'];
    run('modprobe', '-a', 'sch_ingress', 'cls_u32', 'act_gact');
    run('tc', 'qdisc', 'add', 'dev', wire, 'clsact');
    const bth = ipBytes + udpBytes;
    const to = ['match', 'u32', String(queuePair), '0xffffff', 'at', String(bth + 4)];
    const match = (...words: string[]): string[] => [
      'u32',
      'match',
      'ip',
      'protocol',
      '17',
      '0xff',
      ...words,
    ];
    const forged = match('match', 'u16', String(forgedPort), '0xffff', 'at', String(ipBytes));
    run('tc', 'filter', 'add', ...ingress, 'prio', '1', ...forged, 'action', 'pass');
    for (const opcode of [Opcode.sendOnly, Opcode.sendAndInvalidate]) {
      const it = match('match', 'u8', String(opcode), '0xff', 'at', String(bth), ...to);
      run('tc', 'filter', 'add', ...ingress, 'prio', '2', ...it, 'action', 'drop');
    }
  }

  /** Lets later messages pass. */
  close(): void {
    run('tc', 'qdisc', 'del', 'dev', wire, 'clsact');
  }
}

export type Forged = Pick<Packet, 'opcode' | 'queuePair' | 'sequence' | 'payload'> & {
  readonly flags?: number;
};

/**
 * Sends whole IP packets, which Node cannot send. This program reads lines of hex from stdin. Its arguments
 * are the two addresses.
 */
const rawSocket = `
import socket, sys
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
raw.bind((sys.argv[1], 0))
print('ready', flush=True)
for line in sys.stdin:
    raw.sendto(bytes.fromhex(line.strip()), (sys.argv[2], 0))
`;

/** Sends forged packets that seem to come from the device at that address. */
export class Forger {
  readonly port: number = forgedPort;
  readonly #program: ChildProcess;
  readonly #from: string;
  readonly #to: string;

  private constructor(program: ChildProcess, from: string, to: string) {
    this.#program = program;
    this.#from = from;
    this.#to = to;
  }

  static async open(side: 'client' | 'server'): Promise<Forger> {
    const [from, to] = [addresses[side], addresses[side === 'client' ? 'server' : 'client']];
    const program = spawn('python3', ['-c', rawSocket, from, to], { stdio: ['pipe', 'pipe', 'inherit'] });
    await said(program, program.stdout!, 'ready');
    return new Forger(program, from, to);
  }

  send({ opcode, flags = 0, queuePair, sequence, payload }: Forged): void {
    const bth = Buffer.alloc(bthBytes);
    bth.set([opcode, flags, 0xff, 0xff]);
    bth.writeUIntBE(queuePair, 5, 3);
    // Requests an acknowledgement.
    bth[8] = 0x80;
    bth.writeUIntBE(sequence & 0xff_ffff, 9, 3);
    const packet = Buffer.concat([this.#head(bthBytes + payload.byteLength + icrcBytes), bth, payload]);
    const icrc = Buffer.alloc(icrcBytes);
    icrc.writeUInt32LE(icrcOf(packet));
    this.#program.stdin!.write(`${Buffer.concat([packet, icrc]).toString('hex')}\n`);
  }

  async close(): Promise<void> {
    const exit = once(this.#program, 'exit');
    this.#program.stdin!.end();
    await exit;
  }

  /** Returns the headers of IP, whose checksum the kernel fills in, and of UDP, without a checksum. */
  #head(dataBytes: number): Buffer {
    const head = Buffer.alloc(ipBytes + udpBytes);
    head[0] = 0x45;
    head.writeUInt16BE(head.byteLength + dataBytes, 2);
    // The kernel would replace an identification of 0.
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(0x4000, 6);
    head.set([64, 17], 8);
    head.set(this.#from.split('.').map(Number), 12);
    head.set(this.#to.split('.').map(Number), 16);
    head.writeUInt16BE(this.port, ipBytes);
    head.writeUInt16BE(rocePort, ipBytes + 2);
    head.writeUInt16BE(udpBytes + dataBytes, ipBytes + 4);
    return head;
  }
}
