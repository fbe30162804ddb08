/**
 * Opens one native context whose client session talks to its own server session. This is the smallest setup
 * that carries calls through the addon, and it is used as runtime/native/native.ts describes. The tests of
 * this folder use it, and so do the processes and threads that they start.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer as listen, type Server } from 'node:net';
import { handOff } from '../../runtime/control/socket/handoff.ts';
import {
  Ctl,
  Ev,
  EvKind,
  loadNative,
  type NativeContext,
  type NativeOptions,
  type SessionOptions,
  Sub,
  SubOp,
  shortMessageSlots,
  Use,
} from '../../runtime/native/native.ts';

export interface End {
  kind: number;
  status: number;
  reason: number;
  processed: number;
  region: number;
  message: Uint8Array;
}
export interface Request {
  session: number;
  call: number;
  region: number;
  message: Uint8Array;
}

const defaults: NativeOptions = {
  fabric: 'sim',
  polling: 'adaptive',
  slotBytes: 1024,
  sendSlots: 64,
  arenaBytes: 8 << 20,
  mrCacheBytes: 4 << 20,
  mrCacheEntriesMax: 64,
  mrCacheIdleMs: 10_000,
  // This is for programs of tests that poll the addon as a JS runtime without libuv does.
  ...(process.env.RDMA_RPC_TEST_LOOP === 'thread' ? { loop: 'thread' as const } : {}),
};
const session: SessionOptions = {
  role: 'client',
  inflightMax: 16,
  messageMaxBytes: 4 << 20,
  peerMessageMaxBytes: 4 << 20,
};

/** Opens a port of this process. Sessions over tcp connect to it as they do to a server's port. */
export async function acceptor(): Promise<{ server: Server; port: number }> {
  const server = listen((socket) =>
    socket.once('data', (firstBytes) => {
      const why = handOff(socket, firstBytes);
      if (why !== '') throw new Error(why);
      socket.destroy();
    }),
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, port: (server.address() as AddressInfo).port };
}

export class Loopback {
  readonly native: NativeContext;
  readonly client: number;
  readonly server: number;
  /** The server's handler, which answers with the same bytes unless a test replaces it. */
  onRequest: (request: Request) => void = (request) => this.respond(request, request.message);
  readonly down: number[] = [];
  readonly #ends = new Map<number, (end: End) => void>();
  readonly #blocks = new Map<number, number[]>();

  /** `port` is the port of an `acceptor`, for tcp. */
  constructor(fabric: NativeOptions['fabric'], options: Partial<NativeOptions> = {}, port = 0) {
    this.native = loadNative().createContext({ ...defaults, fabric, ...options });
    this.native.onEvents((count) => this.#onEvents(count));
    this.client = this.native.createSession(session);
    this.server = this.native.createSession({ ...session, role: 'server' });
    if (port === 0) this.#connect(this.client, this.server);
    else this.#connect(this.client, this.server, '127.0.0.1', port);
    this.#connect(this.server, this.client);
  }

  #connect(from: number, to: number, host?: string, port?: number): void {
    const why = this.native.connectSession(from, this.native.sessionAddress(to), host, port);
    if (why !== '') throw new Error(why);
  }

  #takeSlot(): number {
    const { control, freeSlots } = this.native;
    const free = control[Ctl.freeSlots]!;
    if (free === 0) throw new Error('no send slot');
    control[Ctl.freeSlots] = free - 1;
    return freeSlots[free - 1]!;
  }

  #stage(op: number, to: number, call: number, method: number, message: Uint8Array): void {
    const { control, submissions, sendSlab, slotStride, slotPayloadOffset } = this.native;
    const slot = this.#takeSlot();
    new Uint8Array(sendSlab, slot * slotStride + slotPayloadOffset).set(message);
    const at = control[Ctl.staged]! * Sub.words;
    submissions.fill(0, at, at + Sub.words);
    submissions[at + Sub.op] = op;
    submissions[at + Sub.session] = to;
    submissions[at + Sub.call] = call;
    submissions[at + Sub.method] = method;
    submissions[at + Sub.slot] = slot;
    submissions[at + Sub.messageBytes] = message.length;
    control[Ctl.staged]! += 1;
    this.native.flush();
  }

  #freeCall(): number {
    for (let call = 0; call < session.inflightMax; call += 1) if (!this.#ends.has(call)) return call;
    throw new Error('no call slot');
  }

  /** Starts a call, and returns its number and a promise that resolves when it ends. */
  start(message: Uint8Array): { call: number; end: Promise<End> } {
    const call = this.#freeCall();
    const end = new Promise<End>((resolve) => this.#ends.set(call, resolve));
    if (message.length <= 1024) this.#stage(SubOp.request, this.client, call, 7, message);
    else this.#bulk(SubOp.request, this.client, call, 7, message);
    return { call, end };
  }

  respond(request: Request, message: Uint8Array): void {
    if (message.length <= 1024) this.#stage(SubOp.response, request.session, request.call, 0, message);
    else this.#bulk(SubOp.response, request.session, request.call, 0, message);
    if (request.region > 0) this.native.releaseBlock(request.region);
  }

  /** Submits through an arena block, which is released at the SENT event. */
  #bulk(op: number, to: number, call: number, method: number, message: Uint8Array): void {
    const block = this.native.allocBlock(message.length, Use.application);
    if (block === 0) throw new Error('no arena block');
    const gatherEntry = new Uint8Array(this.native.blockBuffer(block), 0, message.length);
    gatherEntry.set(message);
    const slot = this.#takeSlot();
    const token = this.native.submitBulk(
      op,
      to,
      call,
      method,
      slot,
      0,
      0,
      [gatherEntry],
      [0],
      0,
      Use.request,
      0,
    );
    if (token < 0) throw new Error(`refused: ${token}`);
    this.#blocks.set(token, [block]);
    this.native.flush();
  }

  #message(at: number): Uint8Array {
    const { events } = this.native;
    const region = events[at + Ev.region]!;
    const bytes = events[at + Ev.messageBytes]!;
    if (region === 0 || bytes === 0) return new Uint8Array();
    const buffer = region > 0 ? this.native.blockBuffer(region) : this.#slotMemory(at);
    const skip = region > 0 ? 0 : events[at + Ev.metadataBytes]!;
    return new Uint8Array(buffer, events[at + Ev.offset]! + skip, bytes).slice();
  }

  #slotMemory(at: number): ArrayBuffer {
    const { native } = this;
    const { events } = native;
    const slot = events[at + Ev.receiveSlot]!;
    if (slot > shortMessageSlots) return native.shortMessages;
    return native.receiveWindow(events[at + Ev.session]!, slot - 1);
  }

  #onEvents(count: number): void {
    for (let i = 0; i < count; i += 1) {
      if (this.native.events.length === 0) return; // The close is a result of an earlier event.
      this.#onEvent(i * Ev.words);
    }
  }

  #onEvent(at: number): void {
    const { events } = this.native;
    const call = events[at + Ev.call]!;
    const kind = events[at + Ev.kind]!;
    const region = events[at + Ev.region]!;
    if (kind === EvKind.request) {
      this.onRequest({ session: events[at + Ev.session]!, call, region, message: this.#message(at) });
    } else if (kind === EvKind.settled || kind === EvKind.failed) {
      const resolve = this.#ends.get(call);
      this.#ends.delete(call);
      const status = events[at + Ev.status]!;
      const end = {
        kind,
        status,
        reason: events[at + Ev.reason]!,
        processed: events[at + Ev.processed]!,
        region,
      };
      const message = kind === EvKind.settled ? this.#message(at) : new Uint8Array();
      if (region > 0) this.native.releaseBlock(region);
      resolve?.({ ...end, message });
    } else if (kind === EvKind.sent) {
      for (const block of this.#blocks.get(call) ?? []) this.native.releaseBlock(block);
      this.#blocks.delete(call);
    } else if (kind === EvKind.sessionDown) {
      this.down.push(events[at + Ev.session]!);
    }
  }
}
