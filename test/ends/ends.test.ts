/**
 * Tests that a process or a worker may end at any moment and in any way, with anything open. The process ends
 * with the code that it would have had anyway, without a crash, and without hanging. Each cell is a process;
 * `npm test` runs a fifth of the cells (../extent.ts). A cell runs under the Node that runs this test and
 * under each Node that RDMA_RPC_NODES names (paths, separated by colons).
 */
import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createServer, type Server } from 'rdma-rpc';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tried } from '../extent.ts';
import { echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { compiled } from '../runtime/process/processes.ts';
import { socketPath } from '../runtime/world.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { newLog, streamHandlers } from '../stream/streams-service.ts';
import { things } from './things.ts';

interface End {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** For a worker, the events of its end that the main thread has received. */
  readonly worker?: { readonly code: number; readonly error: string };
}
const worker = (code: number, error = ''): End => ({ code: 0, signal: null, worker: { code, error } });

/** The outcome of each way to end, as seen from outside. */
const ends: Readonly<Record<string, End>> = {
  'by itself': { code: 0, signal: null },
  'process.exit': { code: 7, signal: null },
  'an uncaught error': { code: 1, signal: null },
  'a rejection': { code: 1, signal: null },
  'a signal': { code: null, signal: 'SIGTERM' },
  'worker: by itself': worker(0),
  'worker: process.exit': worker(7),
  'worker: an uncaught error': worker(1, 'as planned'),
  'worker: a rejection': worker(1, 'as planned'),
  'worker: terminate()': worker(1),
};

const nodes = [process.execPath, ...(process.env.RDMA_RPC_NODES ?? '').split(':').filter(Boolean)];
/**
 * Time in milliseconds after which a process counts as hanging. A cell takes a fraction of a second on an
 * idle machine.
 */
const hangMs = 60_000;

const path = socketPath();
const serve = () =>
  createServer()
    .add(EchoDefinition, echoHandlers({ started: 0, aborted: [] }))
    .add(StreamsDefinition, streamHandlers(newLog()));
let server: Server;
let addresses: string[];
beforeAll(async () => {
  server = serve();
  addresses = [await server.listen('127.0.0.1:0'), await server.listen(`unix:${path}`)];
});
afterAll(async () => {
  await server.shutdown({ graceMs: 0 });
  rmSync(path, { force: true });
});

function run(node: string, thing: string, end: string): Promise<{ seen: End; errors: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(node, [compiled('cell', 'ends'), thing, end, ...addresses], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const hangs = setTimeout(() => child.kill('SIGKILL'), hangMs);
    let output = '';
    let errors = '';
    child.stdout.on('data', (data) => {
      output += data;
    });
    child.stderr.on('data', (data) => {
      errors += data;
    });
    child.once('error', reject);
    child.once('close', (code, signal) => {
      clearTimeout(hangs);
      const seen = { code, signal, ...(output !== '' && { worker: JSON.parse(output) as End['worker'] }) };
      resolve({ seen: seen as End, errors });
    });
  });
}

describe.each(nodes)('%s', (node) => {
  describe.each(Object.keys(things).map((thing, row) => ({ thing, row })))(
    'with $thing',
    ({ thing, row }) => {
      const cells = Object.entries(ends).filter((_, column) => tried(row, column));
      test.each(cells)('%s', async (end, expected) => {
        const { seen, errors } = await run(node, thing, end);
        expect(seen, errors).toEqual(expected);
        // A main thread shows the error that ended it, and no other output may hide that error.
        if (expected.code === 1) expect(errors).toContain('Error: as planned');
        else expect(errors).toBe('');
      });
    },
  );
});

test('the server of all of them has released their sessions', async () => {
  await expect.poll(() => server.sessions.length, { timeout: 30_000 }).toBe(0);
});
