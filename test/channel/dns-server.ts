/**
 * Runs a DNS server for tests, on loopback over UDP and TCP. A test sets and changes its answers.
 */
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

export const rcodes = { ok: 0, servfail: 2, nxdomain: 3, refused: 5 } as const;
const types: Readonly<Record<number, string>> = { 1: 'A', 28: 'AAAA', 33: 'SRV' };

export interface Answer {
  /** `1.2.3.4` for A, eight groups for AAAA (`fd00:0:0:0:0:0:0:1`), `priority weight port target` for SRV. */
  readonly records?: readonly string[];
  readonly ttl?: number;
  readonly rcode?: number;
  /** True when the answer over UDP is truncated, so that the client asks again over TCP. */
  readonly truncated?: boolean;
  /** True when the server is silent. */
  readonly silent?: boolean;
}

function nameOf(text: string): Buffer {
  const labels = text.split('.').filter((label) => label !== '');
  return Buffer.concat([
    ...labels.map((label) => Buffer.from([label.length, ...Buffer.from(label)])),
    Buffer.of(0),
  ]);
}

function dataOf(type: number, text: string): Buffer {
  if (type === 1) return Buffer.from(text.split('.').map(Number));
  if (type === 28) {
    const groups = text.split(':').map((group) => Number.parseInt(group, 16));
    return Buffer.from(groups.flatMap((group) => [group >> 8, group & 255]));
  }
  const [priority = '', weight = '', port = '', target = ''] = text.split(' ');
  const head = Buffer.alloc(6);
  for (const [i, each] of [priority, weight, port].entries()) head.writeUInt16BE(Number(each), 2 * i);
  return Buffer.concat([head, nameOf(target)]);
}

export class DnsServer {
  /** The answers by `TYPE name`, such as `A host.test`. A name that is not in this table does not exist. */
  readonly answers = new Map<string, Answer>();
  /** The questions so far, as `udp A host.test`. */
  readonly asked: string[] = [];
  readonly #udp: UdpSocket = createSocket('udp4');
  readonly #tcp: Server = createServer((socket) => this.#serve(socket));
  readonly #sockets = new Set<Socket>();
  #port = 0;

  get address(): string {
    return `127.0.0.1:${this.#port}`;
  }

  /** Starts the server. A port that is free for UDP may be in use for TCP, so several ports are tried. */
  async start(): Promise<this> {
    for (;;) {
      this.#tcp.listen(0, '127.0.0.1');
      await once(this.#tcp, 'listening');
      this.#port = (this.#tcp.address() as AddressInfo).port;
      this.#udp.bind(this.#port, '127.0.0.1');
      const [event] = await Promise.race([
        once(this.#udp, 'listening').then(() => ['listening']),
        once(this.#udp, 'error').then(() => ['error']),
      ]);
      if (event === 'listening') break;
      this.#tcp.close();
    }
    this.#udp.on('message', (query, from) => {
      const reply = this.#reply(query, 'udp');
      if (reply !== undefined) this.#udp.send(reply, from.port, from.address);
    });
    return this;
  }

  async stop(): Promise<void> {
    this.#udp.close();
    this.#tcp.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(this.#tcp, 'close');
  }

  set(question: string, ...records: string[]): void {
    this.answers.set(question, { records });
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    let bytes = Buffer.alloc(0);
    socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket));
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      while (bytes.length >= 2 && bytes.length >= 2 + bytes.readUInt16BE(0)) {
        const length = bytes.readUInt16BE(0);
        const reply = this.#reply(bytes.subarray(2, 2 + length), 'tcp');
        bytes = bytes.subarray(2 + length);
        if (reply === undefined) continue;
        const head = Buffer.alloc(2);
        head.writeUInt16BE(reply.length);
        socket.write(Buffer.concat([head, reply]));
      }
    });
  }

  #reply(query: Buffer, over: 'udp' | 'tcp'): Buffer | undefined {
    const labels: string[] = [];
    let at = 12;
    for (let length = query[at]!; length > 0; length = query[at]!) {
      labels.push(query.toString('latin1', at + 1, at + 1 + length));
      at += 1 + length;
    }
    const type = query.readUInt16BE(at + 1);
    const question = `${types[type] ?? type} ${labels.join('.').toLowerCase()}`;
    this.asked.push(`${over} ${question}`);
    const known = this.answers.get(question);
    // A name with records of another type exists, so the answer is not NXDOMAIN.
    const exists = [...this.answers.keys()].some((key) => key.split(' ')[1] === question.split(' ')[1]);
    const { records = [], ttl = 60, rcode, truncated = false, silent = false } = known ?? {};
    if (silent) return undefined;
    const cut = truncated && over === 'udp';
    const answers = cut ? [] : records.map((each) => dataOf(type, each));
    const header = Buffer.alloc(12);
    header.writeUInt16BE(query.readUInt16BE(0), 0);
    const code = rcode ?? (known !== undefined || exists ? rcodes.ok : rcodes.nxdomain);
    header.writeUInt16BE(0x8580 | (cut ? 0x0200 : 0) | code, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(answers.length, 6);
    const sections = answers.map((data) => {
      const head = Buffer.alloc(12);
      head.writeUInt16BE(0xc00c, 0);
      head.writeUInt16BE(type, 2);
      head.writeUInt16BE(1, 4);
      head.writeUInt32BE(ttl, 6);
      head.writeUInt16BE(data.length, 10);
      return Buffer.concat([head, data]);
    });
    return Buffer.concat([header, query.subarray(12, at + 5), ...sections]);
  }
}
