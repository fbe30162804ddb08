/**
 * A peer that is killed with SIGKILL in the middle of transfers. What `node:net` shows depends on the kernel:
 * it sends a reset if the dead process had not read everything, otherwise an orderly end, with which half a
 * message looks like a whole one. Ours is always a reset. So the normal form of the event is `gone`, and what
 * came before it must be right.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer as createNetServer, type Socket as NetSocket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { createServer, type Socket } from 'rdma-rpc/socket';
import { expect, onTestFinished, test } from 'vitest';

const program = fileURLToPath(new URL('../../dist/test/socket/kill-process.js', import.meta.url));
const pattern = Buffer.alloc(100_000, 'kill');
const connections = 10;
const rounds = 6;

interface Seen {
  /** Events of each connection, `end`, `error CODE` and `close`. */
  readonly events: string[][];
  wrongBytes: number;
}

function watch(socket: NetSocket | Socket, seen: Seen): Promise<void> {
  const events: string[] = [];
  seen.events.push(events);
  let at = 0;
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
  socket.on('end', () => events.push('end'));
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

test.each(['node:net', 'ours'] as const)(
  'each connection ends once, with right bytes before: %s',
  async (library) => {
    const seen: Seen = { events: [], wrongBytes: 0 };
    let closed: Promise<void>[] = [];
    let onConnection: () => void = () => undefined;
    const serve = (socket: NetSocket | Socket): void => {
      closed.push(watch(socket, seen));
      onConnection();
    };
    const server = library === 'ours' ? createServer(serve) : createNetServer(serve);
    await new Promise<void>((resolve) =>
      library === 'ours'
        ? void (server as ReturnType<typeof createServer>).listen('127.0.0.1:0', resolve)
        : void (server as ReturnType<typeof createNetServer>).listen(0, '127.0.0.1', resolve),
    );
    const { port } = server.address() as AddressInfo;
    for (let round = 0; round < rounds; round++) {
      closed = [];
      const all = new Promise<void>((resolve) => {
        onConnection = () => {
          if (closed.length === connections) resolve();
        };
      });
      const child: ChildProcess = spawn(
        process.execPath,
        [program, library, `127.0.0.1:${port}`, String(connections)],
        { stdio: 'inherit' },
      );
      onTestFinished(() => void child.kill('SIGKILL'));
      await all;
      child.kill('SIGKILL');
      await once(child, 'exit');
      await Promise.all(closed);
    }
    expect(seen.wrongBytes).toBe(0);
    expect(seen.events).toHaveLength(rounds * connections);
    const gone =
      library === 'ours'
        ? /^error (ECONNRESET|EPIPE), close$/
        : /^(end|(end, )?error \w+|end), close$|^end, close$/;
    expect(seen.events.map((each) => each.join(', ')).filter((each) => !gone.test(each))).toEqual([]);
    server.close();
    await once(server, 'close');
  },
);
