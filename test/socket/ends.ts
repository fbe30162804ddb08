/**
 * Runs one conversation of two sockets, of `node:net` or of rdma-rpc/socket, and writes down what each side
 * saw. Both sides send bytes; one of them, the actor, does something before, during or after that.
 */
import * as net from 'node:net';
import type { Duplex } from 'node:stream';
import { connect, createServer, type Socket } from 'rdma-rpc/socket';

const actions = ['end', 'destroy', 'reset', 'pause', 'end, then reset'] as const;
const moments = ['connecting', 'before', 'during', 'after'] as const;
/** One packet, more than Node reads at once, and more than the system holds between two sockets. */
const sizes = [64, 100_000, 3_000_000] as const;

export interface Case {
  readonly action: (typeof actions)[number];
  readonly moment: (typeof moments)[number];
  readonly actor: 'client' | 'server';
  readonly allowHalfOpen: boolean;
  /** `node:net` sets its own value, whatever is given. */
  readonly autoDestroy: boolean;
  readonly size: number;
}

/**
 * All combinations. Only a client can act while it connects; `autoDestroy: false`, which changes nothing,
 * runs with one size.
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
  /** Makes a pair. `onServer` gets the server's socket. Resolves with the client's, still connecting. */
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

/** Ours, on a fabric. */
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

/** What a side saw: its events in order, and how much of the data. */
export interface Seen {
  readonly client: string;
  readonly server: string;
}

/** Bytes whose values tell their positions. */
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

/** Lets everything happen that needs no more than some turns of the event loop. */
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
      // Until the other side has written what it wants to and has ended.
      void (async () => {
        const other = await passive();
        for (let i = 0; i < 20; i++) await turn();
        other?.end();
        actor.resume();
      })();
  }
}

/** Writes single bytes until the socket is destroyed: only so does a half-closed side learn of a reset. */
async function probe(socket: Any): Promise<void> {
  while (!socket.destroyed && socket.writable) {
    await new Promise<void>((resolve) => socket.write('x', () => resolve()));
    await turn();
  }
}

/**
 * Returns the events in a normal form. The two directions of a connection are independent, so `finish` stands
 * apart from what was read; the error and `close` come last. How much data has come before a connection was
 * destroyed or reset depends on how much the system holds, so `all` stands only where nobody does that.
 * Whether a socket first reads the end or first notices the reset depends on timing too, and so does the code
 * of its error then, ECONNRESET for reading and EPIPE for writing (codes.test.ts has the cases that are
 * certain).
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

/** Turns of the event loop after which the actor and the other side begin. */
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
    // Whoever learns of the end, ends, and writes no more than it did before.
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
  // A client that goes before it is connected may have no other side.
  if (one.moment !== 'connecting' || sides.client?.events.includes('connect')) await accepted;
  await sides.server?.closed;
  close();
  const text = (side: Side | undefined): string => (side === undefined ? '' : normal(one, side));
  // A client that was destroyed while it was connecting may have been accepted by the system or not.
  const unknown = one.moment === 'connecting' && one.action === 'destroy';
  return { client: text(sides.client), server: unknown ? '' : text(sides.server) };
}
