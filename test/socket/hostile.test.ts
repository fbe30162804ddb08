/**
 * Tests that a peer that breaks the rules of the wire (docs/wire/calls.md §8.1) causes an error of that
 * socket only.
 */
import { once } from 'node:events';
import { createChannel, createClient, createServer as createRpcServer } from 'rdma-rpc';
import { connect, type Socket } from 'rdma-rpc/socket';
import { expect, test } from 'vitest';
import { type SegmentInit, SocketsDefinition } from '../../runtime/socket/gen/rdma_rpc/socket.rdma.ts';
import { errorOf, listening } from './pair.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

const wrong: readonly (readonly [string, readonly SegmentInit[], RegExp])[] = [
  ['data behind the end', [{ fin: true }, { data: [bytes('late')] }], /^(EPIPE write|none)$/],
  ['data behind a reset', [{ reset: true }, { data: [bytes('late')] }], /^ECONNRESET read$/],
  ['a reset with data', [{ reset: true, data: [bytes('x')] }], /^ECONNRESET read$/],
  ['no fin before the end of the stream', [{ data: [bytes('x')] }], /^ECONNRESET read$/],
  ['empty segments', [{}, { data: [new Uint8Array(0)] }, {}], /^ECONNRESET read$/],
  ['two ends', [{ fin: true }, { fin: true }], /^none$/],
];

test.each(wrong)('a hostile client sends %s', async (_, segments, code) => {
  const sockets = await listening();
  const accepted = once(sockets, 'connection') as Promise<[Socket]>;
  const channel = createChannel(sockets.where!);
  const answers = createClient(SocketsDefinition, channel).connect(segments);
  const reading = (async () => {
    const seen: unknown[] = [];
    try {
      for await (const answer of answers) seen.push(answer);
    } catch {
      // The server may end the stream with an error.
    }
    return seen;
  })();
  const [socket] = await accepted;
  let received = '';
  socket.on('data', (chunk: Buffer) => {
    received += String(chunk);
  });
  expect(await errorOf(socket)).toMatch(code);
  expect(received).not.toContain('late');
  await reading;
  await channel.close();
  await sockets[Symbol.asyncDispose]();
});

test.each(wrong)('a hostile server sends %s', async (_, segments, code) => {
  const server = createRpcServer();
  server.add(SocketsDefinition, {
    async *connect(_requests, context) {
      context.header.set('rdma-rpc-socket', '1');
      context.sendHeader();
      yield* segments;
    },
  });
  const socket = connect(await server.listen('127.0.0.1:0'));
  let received = '';
  socket.on('data', (chunk: Buffer) => {
    received += String(chunk);
  });
  expect(await errorOf(socket)).toMatch(code);
  expect(received).not.toContain('late');
  await server.shutdown({ graceMs: 0 });
});

test('when a server never accepts, the attempt ends with the stream', async () => {
  const server = createRpcServer();
  server.add(SocketsDefinition, { connect: () => [{ data: [bytes('x')] }] });
  const socket = connect(await server.listen('127.0.0.1:0'));
  expect(await errorOf(socket)).toBe('ECONNREFUSED connect');
  await server.shutdown({ graceMs: 0 });
});
