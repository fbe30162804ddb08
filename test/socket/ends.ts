/**
 * Runs one conversation of two sockets, either of `node:net` or of rdma-rpc/socket, and records the events of
 * each side. Both sides send bytes. One side, the actor, performs an action before, during or after the
 * transfer.
 */
import * as net from 'node:net';
import type { Duplex } from 'node:stream';
import { connect, createServer, type Socket } from 'rdma-rpc/socket';

const actions = ['end', 'destroy', 'reset', 'pause', 'end, then reset'] as const;
const moments = ['connecting', 'before', 'during', 'after'] as const;
/**
 * The first size fits one packet, the second is more than Node reads at once, the third fills system buffers.
 */
const sizes = [64, 100_000, 3_000_000] as const;

export interface Case {
  readonly action: (typeof actions)[number];
  readonly moment: (typeof moments)[number];
  readonly actor: 'client' | 'server';
  readonly allowHalfOpen: boolean;
  /** `node:net` ignores this option and sets its own value. */
  readonly autoDestroy: boolean;
  readonly size: number;
}

/**
 * Returns all combinations. Only a client can act while it connects. `autoDestroy: false` changes nothing, so
 * it runs with one size only.
 */
export function allCases(): Case[] {
  return actions.flatMap((action) =>
    moments.flatMap((moment) =>
      (['client', 'server'] as const).flatMap((actor) =>
        [false, true].flatMap((allowHalfOpen) =>
          [false, true].flatMap((autoDestroy) =>
            sizes.flatMap((size) =>
              (moment === 'connecting' && actor === 'server') || (!autoDestroy && size !== 100_000)
                ? []
                : [{ action, moment, actor, allowHalfOpen, autoDestroy, size }],
            ),
          ),
        ),
      ),
    ),
  );
}

export function nameOf(one: Case): string {
  const { action, moment, actor, allowHalfOpen, autoDestroy, size } = one;
  const options = `${allowHalfOpen ? 'half-open' : 'whole'}${autoDestroy ? '' : ', autoDestroy: false'}`;
  return `${actor}: ${action} ${moment}, ${size} bytes, ${options}`;
}

type Any = Duplex & {
  resetAndDestroy(): unknown;
};

/** A library of sockets. */
export interface Library {
  /**
   * Makes a pair. `onServer` gets the server's socket. The result has the client's socket, still connecting.
   */
  pair(
    options: { allowHalfOpen: boolean; autoDestroy: boolean },
    onServer: (socket: Any) => void,
  ): Promise<{ client: Any; close(): void }>;
}

export const nodeNet: Library = {
  pair: ({ allowHalfOpen, autoDestroy }, onServer) =>
    new Promise((resolve) => {
      const server = net.createServer({ allowHalfOpen }, onServer);
      server.listen(0, '127.0.0.1', () => {
        const { port } = server.address() as net.AddressInfo;
        const options = { port, host: '127.0.0.1', allowHalfOpen, autoDestroy };
        resolve({ client: net.connect(options), close: () => void server.close() });
      });
    }),
};

/** Returns the sockets of rdma-rpc/socket on one fabric. */
export function ours(fabric: 'shm' | 'tcp'): Library {
  const channel = { fabric: [fabric] } as const;
  return {
    pair: ({ allowHalfOpen }, onServer) =>
      new Promise((resolve) => {
        const server = createServer({ allowHalfOpen }, onServer as (socket: Socket) => void);
        server.listen('127.0.0.1:0', () =>
          resolve({
            client: connect(server.where!, { allowHalfOpen, channel }),
            close: () => void server.close(),
          }),
        );
      }),
  };
}

/** The events of each side in order; `all` is the event that all bytes have come. */
export interface Seen {
  readonly client: string;
  readonly server: string;
}

/** Returns bytes whose values depend on their positions, so that misplaced bytes are noticed. */
function bytesOf(size: number): Buffer {
  const bytes = Buffer.allocUnsafe(size);
  for (let i = 0; i < size; i++) bytes[i] = (i * 7 + (i >> 8)) & 0xff;
  return bytes;
}

class Side {
  readonly events: string[] = [];
  received = 0;
  closed: Promise<void>;
  onFirst: () => void = () => undefined;
  onAll: () => void = () => undefined;
  readonly #socket: Any;

  constructor(socket: Any, expected: Buffer) {
    this.#socket = socket;
    for (const event of ['connect', 'ready', 'end', 'finish', 'timeout'])
      socket.on(event, () => this.events.push(event));
    socket.on('error', (error: NodeJS.ErrnoException) => this.events.push(`error ${error.code}`));
    socket.on('data', (bytes: Buffer) => {
      const from = this.received;
      this.received += bytes.length;
      if (!expected.subarray(from, this.received).equals(bytes)) this.events.push('WRONG BYTES');
      if (from === 0) this.onFirst();
      if (this.received === expected.length) {
        this.events.push('all');
        this.onAll();
      }
    });
    this.closed = new Promise((resolve) => {
      socket.on('close', (hadError: boolean) => {
        this.events.push(`close ${hadError}`);
        resolve();
      });
    });
  }

  send(bytes: Buffer): Promise<void> {
    return new Promise((resolve) => this.#socket.write(bytes, () => resolve()));
  }
}

/** Waits for one iteration of the event loop. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function act(one: Case, actor: Any, passive: () => Promise<Any | undefined>): void {
  switch (one.action) {
    case 'end':
      actor.end();
      break;
    case 'destroy':
      actor.destroy();
      break;
    case 'reset':
      actor.resetAndDestroy();
      break;
    case 'end, then reset':
      actor.end(() => actor.resetAndDestroy());
      break;
    case 'pause':
      actor.pause();
      // The actor stays paused until the other side has written its bytes and has ended.
      void (async () => {
        const other = await passive();
        for (let i = 0; i < 20; i++) await turn();
        other?.end();
        actor.resume();
      })();
  }
}

/**
 * Writes single bytes until the socket is destroyed. A half-closed side notices a reset only when it writes.
 */
async function probe(socket: Any): Promise<void> {
  while (!socket.destroyed && socket.writable) {
    await new Promise<void>((resolve) => socket.write('x', () => resolve()));
    await turn();
  }
}

/**
 * Returns the events in a normal form, because three things depend on timing and on system buffers. First,
 * the two directions of a connection are independent, so `finish` is moved behind all other events. Second,
 * the amount of data that comes before a connection is destroyed or reset varies, so `all` is kept only in
 * cases without such an end. Third, a socket may read the end before it notices the reset, and the code of
 * its error is ECONNRESET when it reads and EPIPE when it writes; so `end` is dropped then, and both codes
 * become `lost`. The cases whose code is certain are in codes.test.ts.
 */
function normal(one: Case, { events }: Side): string {
  const whole = one.action === 'end' || one.action === 'pause' || one.moment === 'after';
  const isLost = (each: string): boolean => /^error (ECONNRESET|EPIPE)$/.test(each);
  const lost = events.some(isLost);
  const read = events
    .filter((each) => each !== 'finish' && (whole || each !== 'all') && !(lost && each === 'end'))
    .map((each) => (isLost(each) ? 'lost' : each));
  return [...read, ...events.filter((each) => each === 'finish')].join(', ');
}

/** Numbers of event-loop iterations after which the actor and the other side begin. */
export type Delays = readonly [number, number];

/** Returns the events of both sides. */
export async function converse(library: Library, one: Case, delays: Delays = [0, 0]): Promise<Seen> {
  const bytes = bytesOf(one.size);
  let onServer: (socket: Any) => void = () => undefined;
  const accepted = new Promise<Any>((resolve) => {
    onServer = resolve;
  });
  const sides: { client?: Side; server?: Side } = {};
  const sockets: { client?: Any; server?: Any } = {};
  const isActor = (name: 'client' | 'server'): boolean => one.actor === name;
  const begin = (name: 'client' | 'server', socket: Any): Side => {
    const side = new Side(socket, bytes);
    sockets[name] = socket;
    sides[name] = side;
    const other = name === 'client' ? 'server' : 'client';
    const acts = (): void =>
      act(one, socket, async () => {
        if (name === 'client') await accepted;
        return sockets[other];
      });
    const start = async (): Promise<void> => {
      for (let i = 0; i < delays[isActor(name) ? 0 : 1]; i++) await turn();
      if (isActor(name) && one.moment === 'before') acts();
      if (socket.writable) await side.send(bytes);
    };
    let hasSent: () => void = () => undefined;
    const sent = new Promise<void>((resolve) => {
      hasSent = resolve;
    });
    if (isActor(name)) {
      if (one.moment === 'connecting') acts();
      if (one.moment === 'during') side.onFirst = acts;
      if (one.moment === 'after') side.onAll = () => void sent.then(acts);
    }
    // A half-open side ends its own direction when it has read the end of its peer.
    socket.on('end', () => {
      if (!isActor(name) && one.action === 'end, then reset' && one.allowHalfOpen) void probe(socket);
      else if (one.allowHalfOpen) socket.end();
    });
    if (name === 'client') {
      socket.on('connect', () => void start().then(hasSent));
    } else void start().then(hasSent);
    return side;
  };
  const { client, close } = await library.pair(one, (socket) => {
    begin('server', socket);
    onServer(socket);
  });
  await begin('client', client).closed;
  // When a client is destroyed before it is connected, the server may never get a socket.
  if (one.moment !== 'connecting' || sides.client?.events.includes('connect')) await accepted;
  await sides.server?.closed;
  close();
  const text = (side: Side | undefined): string => (side === undefined ? '' : normal(one, side));
  // Whether the system accepts a client that was destroyed while it was connecting depends on timing.
  const unknown = one.moment === 'connecting' && one.action === 'destroy';
  return { client: text(sides.client), server: unknown ? '' : text(sides.server) };
}
