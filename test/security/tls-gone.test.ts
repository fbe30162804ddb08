/**
 * Tests a client that disconnects before it is accepted. The client's address is then unknown, and the bytes
 * that it has sent are not read without TLS.
 */
import { execFileSync } from 'node:child_process';
import { connect } from 'node:net';
import { createServer, type Server } from 'rdma-rpc';
import { afterEach, expect, test } from 'vitest';
import { encodeFrame } from '../../runtime/control/link.ts';
import { hello } from '../control/by-hand.ts';
import { Authority } from './certificates.ts';

const authority = new Authority();
const { cert, key } = authority.issue({ addresses: ['127.0.0.1'] });

let server: Server | undefined;
afterEach(() => server?.shutdown({ graceMs: 0 }));

/** Sends the bytes, resets the connection, and ends. */
const script = `
const [port, bytes] = process.argv.slice(1);
const socket = require('node:net').connect(Number(port), '127.0.0.1', () => {
  socket.write(Buffer.from(bytes, 'base64'), () => socket.resetAndDestroy());
});`;

test('with TLS its plain hello is not heard', async () => {
  const asked: unknown[] = [];
  const lines: string[] = [];
  server = createServer({
    tls: { cert, key, ca: authority.ca },
    authenticate: (peer) => {
      asked.push(peer);
      return 'alice';
    },
    log: (line) => lines.push(line),
  });
  const port = (await server.listen('127.0.0.1:0')).split(':')[1]!;
  // No connection is accepted before that process has ended.
  execFileSync(process.execPath, ['-e', script, port, encodeFrame(hello()).toString('base64')]);
  // Connections are accepted in the order in which they came.
  await new Promise((resolve) => {
    const next = connect(Number(port), '127.0.0.1', () => next.end(Buffer.alloc(4, 0xff)));
    next.once('close', resolve).resume();
  });
  expect(asked).toEqual([]);
  expect(lines.filter((line) => !/TLS/.test(line))).toEqual([]);
});
