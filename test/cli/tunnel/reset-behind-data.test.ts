/**
 * A program resets its connection right behind data. The tunnel reads the data and the reset at the same
 * time. Node 20 and 22 then report an orderly end, but the tunnel must pass on a reset.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import { Carrier } from '../../../cli/tunnel/carrier.ts';
import { newCounts } from '../../../cli/tunnel/counts.ts';
import { FrameReader, Kind } from '../../../cli/tunnel/frames.ts';
import { relay } from '../../../cli/tunnel/relay.ts';
import { SlowProgram } from './slow-program.ts';

/** Each round, a program connects from this thread, sends data and resets the connection. */
const program = `
  const { connect } = require('node:net');
  const { parentPort, workerData } = require('node:worker_threads');
  const done = new Int32Array(workerData.done);
  const socket = connect(workerData.port, '127.0.0.1');
  parentPort.once('message', () => {
    socket.write('part of it', () => {
      socket.resetAndDestroy();
      Atomics.store(done, 0, 1);
      Atomics.notify(done, 0);
    });
  });
`;

/** Returns the tunnel's socket of a program, and a function that returns when the program has reset it. */
async function connection(): Promise<{ readonly socket: Socket; sendAndReset(): void }> {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const done = new SharedArrayBuffer(4);
  const worker = new Worker(program, { eval: true, workerData: { port, done } });
  onTestFinished(() => void worker.terminate());
  const [socket] = (await once(server, 'connection')) as [Socket];
  server.close();
  const sendAndReset = (): void => {
    worker.postMessage('now');
    Atomics.wait(new Int32Array(done), 0, 0);
  };
  return { socket, sendAndReset };
}

test('a carrier sends a reset, and no end', async () => {
  const { socket, sendAndReset } = await connection();
  const carrier = new Carrier({ counts: newCounts(), report: () => undefined, onOver: () => undefined });
  carrier.open = true;
  carrier.carry(socket);
  sendAndReset();
  const kinds: number[] = [];
  let data = '';
  const reader = new FrameReader({
    onData: (_connection, bytes) => {
      data += bytes.toString();
    },
    onFrame: (kind) => kinds.push(kind),
  });
  for await (const { parts } of carrier) {
    reader.read((parts ?? []).map((part) => Buffer.from(part)));
    if (kinds.length === 2) break;
  }
  expect(data).toBe('part of it');
  expect(kinds).toEqual([Kind.open, Kind.reset]);
});

test('a client without a tunnel gets a reset, and no end', async () => {
  const { socket, sendAndReset } = await connection();
  const client = new SlowProgram();
  const errors: unknown[] = [];
  relay(socket, client as never, newCounts(), ({ code }) => errors.push(code));
  const closed = once(client, 'close');
  sendAndReset();
  await closed;
  expect(errors).toEqual(['ECONNRESET']);
  expect(client.writableEnded).toBe(false);
});
