/**
 * What passes on the wire of the guest, and packets of RoCE that nobody but a forger sends: for the tests of
 * what a session protects. tcpdump reads; a raw socket writes: RoCEv2 is UDP, and its checksum has no key.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { crc32 } from 'node:zlib';
import { whyNot } from '../needs.ts';

const rocePort = 4791;
/** Of the client's device (test/rdma-vm/guest.sh). */
const wire = 'v0';
export const addresses = { client: '10.77.0.1', server: '10.77.0.2' } as const;

/** Longer than any that the wire takes. */
const packetBytesMax = 16 * 1024;
/** For packets that tcpdump has not taken yet: a large message of a test, several times. */
const roomKiB = 32 * 1024;

/** Of UDP: no device sends from there. */
const forgedPort = 999;

const ipBytes = 20;
const udpBytes = 8;
const bthBytes = 12;
const icrcBytes = 4;
const etherBytes = 14;
const pcapHeadBytes = 24;
const recordHeadBytes = 16;

/** Of reliable connections. */
export const Opcode = {
  sendOnly: 0x04,
  writeFirst: 0x06,
  writeOnly: 0x0a,
  readRequest: 0x0c,
  firstAnswer: 0x0d,
  lastAnswer: 0x12,
  sendAndInvalidate: 0x17,
} as const;

/** What a READ, and the first packet of a WRITE, say of the memory that they are for. */
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

/** Why there is no wire to look at; '' when there is. */
export function whyNoTap(): string {
  if (process.env.RDMA_VM === undefined) return 'the wire of a NIC cannot be looked at from here';
  return [whyNot('sniffer'), whyNot('strangers')].filter((why) => why !== '').join('; ');
}

/** The invariant checksum: over all that no router changes. `packet`: of IP, up to it. */
function icrcOf(packet: Buffer): number {
  const masked = Buffer.concat([Buffer.alloc(8, 0xff), packet]);
  // Type of service, time to live, both checksums, and what is reserved beside the queue pair's number.
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

/** One of RoCE, as it has passed. */
export class Packet {
  readonly source: string;
  /** Of UDP; those of a device and of a forger differ. */
  readonly port: number;
  readonly opcode: number;
  /** Of the queue pair that it is for. */
  readonly queuePair: number;
  readonly sequence: number;
  /** With the header's byte of flags, which says how much of the payload's end is padding. */
  readonly flags: number;
  /** Behind the base header. */
  readonly payload: Buffer;
  /** Its checksum is the one that we would make. */
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

  /** Of a READ, and of the first packet of a WRITE. */
  get reth(): Reth {
    const { payload } = this;
    const [key, length] = [payload.readUInt32BE(8), payload.readUInt32BE(12)];
    return { address: payload.readBigUInt64BE(), key, length };
  }

  /** Takes a place in the sequence of requests; answers have that of what they answer. */
  get isRequest(): boolean {
    return this.opcode < Opcode.firstAnswer || this.opcode > Opcode.lastAnswer;
  }
}

/** Rejects, with all that it has said instead, when the program ends. */
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
  /** Of RoCE, in order. */
  readonly packets: Packet[] = [];
  readonly #program: ChildProcess;
  readonly #all: Buffer[] = [];
  /** As tcpdump writes them (pcap), up to what is not whole yet. */
  #bytes: Buffer = Buffer.alloc(0);
  /** The head of the file comes first. */
  #skip = pcapHeadBytes;

  private constructor(program: ChildProcess) {
    this.#program = program;
    program.stdout!.on('data', (bytes: Buffer) => this.#take(bytes));
  }

  static async open(): Promise<WireTap> {
    // In this mode the kernel keeps room for the longest packet for each: by tcpdump's defaults for eight of
    // them.
    const room = ['-s', String(packetBytesMax), '-B', String(roomKiB)];
    const program = spawn('tcpdump', ['-i', wire, '-U', '--immediate-mode', ...room, '-w', '-'], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const tap = new WireTap(program);
    await said(program, program.stderr!, 'listening on');
    return tap;
  }

  /** Whether this has passed in one packet. */
  saw(text: string): boolean {
    return this.#all.some((packet) => packet.includes(text));
  }

  /** Rejects when packets have passed that it has not seen: a test would know less than it believes. */
  async close(): Promise<void> {
    let said = '';
    this.#program.stderr!.on('data', (text) => {
      said += String(text);
    });
    const closed = once(this.#program, 'close');
    this.#program.kill();
    await closed;
    if (!/^0 packets dropped by kernel$/m.test(said)) throw new Error(`tcpdump has not seen all: ${said}`);
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

/** Throws with what the command said. */
function run(...[command, ...args]: [string, ...string[]]): void {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr.trim()}`);
}

/**
 * Takes messages (SENDs) for a queue pair of the client's device off the wire, as whoever owns a switch can;
 * a tap still sees them. Those of a forger pass.
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

  /** What comes from now on passes. */
  close(): void {
    run('tc', 'qdisc', 'del', 'dev', wire, 'clsact');
  }
}

export type Forged = Pick<Packet, 'opcode' | 'queuePair' | 'sequence' | 'payload'> & {
  readonly flags?: number;
};

/**
 * Sends whole packets, which no program of Node can: lines of hex on stdin, from and to the addresses in its
 * arguments.
 */
const rawSocket = `
import socket, sys
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
raw.bind((sys.argv[1], 0))
print('ready', flush=True)
for line in sys.stdin:
    raw.sendto(bytes.fromhex(line.strip()), (sys.argv[2], 0))
`;

/** Sends what nobody has asked for, as the device at that address would. */
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
    // It wants to be acknowledged.
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

  /** Of IP, whose checksum the kernel fills in, and of UDP, which goes without. */
  #head(dataBytes: number): Buffer {
    const head = Buffer.alloc(ipBytes + udpBytes);
    head[0] = 0x45;
    head.writeUInt16BE(head.byteLength + dataBytes, 2);
    // The kernel would choose another number than none.
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
