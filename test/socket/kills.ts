/**
 * Kills peers with SIGKILL in the middle of transfers, and records the events of each connection on the other
 * side. kill.test.ts uses this file, and so does the slow suite, with many more kills.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  type AddressInfo,
  createServer as createNetServer,
  type Socket as NetSocket,
  connect as netConnect,
} from 'node:net';
import { fileURLToPath } from 'node:url';
import { connect, createServer, type Socket } from 'rdma-rpc/socket';
import { expect, onTestFinished } from 'vitest';
import { endedByReset } from '../../cli/tunnel/program-side.ts';

const program = fileURLToPath(new URL('../../dist/test/socket/kill-process.js', import.meta.url));
const pattern = Buffer.alloc(100_000, 'kill');

export type Library = 'node:net' | 'ours';

/**
 * Puts a relay between clients and the server at this address. Resolves to the address to which clients
 * connect.
 */
export type Through = (server: string) => Promise<{ readonly address: string; close(): Promise<void> }>;

const nothing: Through = (address) => Promise.resolve({ address, close: () => Promise.resolve() });

export interface Seen {
  /**
   * Events of each connection: `end`, `reset` (a reset that Node reports as an end), `error CODE` and
   * `close`.
   */
  readonly events: string[][];
  wrongBytes: number;
}

/** Sends, receives, and resolves when the socket is closed. `onData` is called once, with the first data. */
export function watch(socket: NetSocket | Socket, seen: Seen, onData: () => void): Promise<void> {
  const events: string[] = [];
  seen.events.push(events);
  let at = 0;
  socket.once('data', onData);
  socket.on('data', (bytes: Buffer) => {
    for (let from = 0; from < bytes.length; ) {
      const count = Math.min(bytes.length - from, pattern.length - (at % pattern.length));
      const start = at % pattern.length;
      if (!bytes.subarray(from, from + count).equals(pattern.subarray(start, start + count)))
        ++seen.wrongBytes;
      from += count;
      at += count;
    }
  });
  socket.on('end', () => events.push(endedByReset(socket) ? 'reset' : 'end'));
  socket.on('error', (error: NodeJS.ErrnoException) => events.push(`error ${error.code}`));
  const write = (): void => {
    if (!socket.destroyed && socket.writable) socket.write(pattern, () => setImmediate(write));
  };
  write();
  return new Promise((resolve) => {
    socket.on('close', () => {
      events.push('close');
      resolve();
    });
  });
}

function start(role: 'client' | 'server', library: Library, ...args: string[]): ChildProcess {
  const child = spawn(process.execPath, [program, role, library, ...args], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

export async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/** A promise that resolves after a number of calls of `down`. */
export class Latch {
  readonly reached: Promise<void>;
  #left: number;
  #resolve: () => void = () => undefined;

  constructor(count: number) {
    this.#left = count;
    this.reached = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  down(): void {
    if (--this.#left === 0) this.#resolve();
  }
}

interface Kills {
  readonly library: Library;
  readonly rounds: number;
  readonly connections: number;
  readonly through: Through;
}

async function killClients({ library, rounds, connections, through }: Kills, seen: Seen): Promise<void> {
  let closed: Promise<void>[] = [];
  let latch = new Latch(0);
  const serve = (socket: NetSocket | Socket): void => {
    closed.push(watch(socket, seen, () => latch.down()));
  };
  const server = library === 'ours' ? createServer(serve) : createNetServer(serve);
  if (library === 'ours') (server as ReturnType<typeof createServer>).listen('127.0.0.1:0');
  else (server as ReturnType<typeof createNetServer>).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const way = await through(`127.0.0.1:${port}`);
  for (let round = 0; round < rounds; round++) {
    closed = [];
    latch = new Latch(connections);
    const child = start('client', library, String(connections), way.address);
    await latch.reached;
    await kill(child);
    await Promise.all(closed);
  }
  await way.close();
  server.close();
  await once(server, 'close');
}

async function killServers({ library, rounds, connections, through }: Kills, seen: Seen): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const child = start('server', library);
    const [bound] = (await once(child, 'message')) as [string];
    const way = await through(bound);
    const { address } = way;
    const latch = new Latch(connections);
    const closed = Array.from({ length: connections }, () => {
      const socket =
        library === 'ours' ? connect(address) : netConnect(Number(address.split(':')[1]), '127.0.0.1');
      return watch(socket, seen, () => latch.down());
    });
    await latch.reached;
    await kill(child);
    await Promise.all(closed);
    await way.close();
  }
}

/** Kills `rounds` peers, and expects that each connection ended once, with right bytes before its end. */
export async function expectEnds(
  killed: 'client' | 'server',
  library: Library,
  rounds: number,
  connections: number,
  through = nothing,
): Promise<void> {
  const seen: Seen = { events: [], wrongBytes: 0 };
  const kills: Kills = { library, rounds, connections, through };
  await (killed === 'client' ? killClients : killServers)(kills, seen);
  expect(seen.wrongBytes).toBe(0);
  expect(seen.events).toHaveLength(rounds * connections);
  const gone =
    library === 'ours'
      ? /^error (ECONNRESET|EPIPE), close$/
      : /^(end|reset|((end|reset), )?error \w+), close$/;
  expect(seen.events.map((each) => each.join(', ')).filter((each) => !gone.test(each))).toEqual([]);
}
