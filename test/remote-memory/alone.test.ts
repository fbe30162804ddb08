/**
 * A program that does nothing but use remote memory of a server in another process: it stays alive while it
 * waits, and ends by itself when it has closed its channel.
 */
import { spawn } from 'node:child_process';
import { createServer, type HandlerContext, type Server } from 'rdma-rpc';
import { type Memories, memoryOf } from 'rdma-rpc/memory';
import { afterEach, expect, test } from 'vitest';
import { compiled } from '../runtime/process/processes.ts';
import { TraderDefinition } from './gen/trade.rdma.ts';

let server: Server | undefined;
afterEach(() => server?.shutdown({ graceMs: 0 }));

async function serve(): Promise<string> {
  server = createServer();
  const memories: Memories = memoryOf(server);
  server.add(TraderDefinition, {
    trade: (_, context: HandlerContext) => {
      const bytes = new Uint8Array(8).fill(7);
      return { memory: memories.of(context)!.expose(bytes, { read: true }).handle };
    },
  });
  return server.listen('127.0.0.1:0');
}

test.each(['shm', 'tcp'])('on %s', async (fabric) => {
  const address = await serve();
  const child = spawn(process.execPath, [compiled('alone-process', 'remote-memory'), address, fabric]);
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data) => {
      output += data;
    });
  const code = await new Promise((resolve) => child.once('close', resolve));
  expect({ code, output }).toEqual({ code: 0, output: '7 7\n' });
});
