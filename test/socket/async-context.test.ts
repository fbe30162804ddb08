/**
 * Tests AsyncLocalStorage in functions that an application gives to sockets. "alice" listens, and "bob" and
 * "carol" connect. No function of one user may run in the store of another user.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { connect, createServer } from 'rdma-rpc/socket';
import { expect, test } from 'vitest';

const user = new AsyncLocalStorage<string>();

test.each(['shm', 'tcp'] as const)('%s: listeners see their own user or no store', async (fabric) => {
  const channel = { fabric }; // one object, so that all sockets share a connection
  const seen: Record<string, Set<string>> = {};
  const look = (name: string): void => {
    seen[name] ??= new Set();
    seen[name].add(user.getStore() ?? 'nobody');
  };
  const server = await user.run('alice', async () => {
    const made = createServer({ server: { fabric } }, (socket) => {
      look('server: connection');
      socket.on('data', (data) => {
        look('server: data');
        socket.write(data, () => look('server: written'));
      });
      socket.on('end', () => {
        look('server: end');
        socket.end();
      });
      socket.on('close', () => look('server: close'));
      made.getConnections(() => look('server: getConnections'));
    });
    made.listen('127.0.0.1:0', () => look('server: listening'));
    await once(made, 'listening');
    return made;
  });

  const converse = (name: string) =>
    user.run(name, async () => {
      const socket = connect(server.where!, { channel }, () => look(`${name}: connect`));
      const into = new Uint8Array(100);
      for (const event of ['data', 'end'] as const) socket.on(event, () => look(`${name}: ${event}`));
      socket.write('hello', () => look(`${name}: written`));
      await once(socket, 'data');
      await new Promise<void>((resolve) =>
        socket.setTimeout(5, () => {
          look(`${name}: timeout`);
          resolve();
        }),
      );
      socket.end();
      await once(socket, 'close');
      const reading = connect(server.where!, {
        channel,
        onread: {
          buffer: () => {
            look(`${name}: buffer`);
            return into;
          },
          callback: () => {
            look(`${name}: onread`);
            reading.end();
            return true;
          },
        },
      });
      reading.write('hello');
      await once(reading, 'close');
    });
  await converse('bob');
  await Promise.all([converse('bob'), converse('carol')]);
  const closed = new Promise<void>((resolve) =>
    user.run('alice', () =>
      server.close(() => {
        look('server: closed');
        resolve();
      }),
    ),
  );
  await closed;

  for (const [name, users] of Object.entries(seen)) {
    const own = name.startsWith('server') ? 'alice' : name.slice(0, name.indexOf(':'));
    expect([...users].filter((each) => each !== own && each !== 'nobody')).toEqual([]);
  }
  expect(Object.keys(seen).filter((name) => name.startsWith('server'))).toHaveLength(8);
  expect(Object.keys(seen).filter((name) => name.startsWith('carol'))).toHaveLength(7);
});
