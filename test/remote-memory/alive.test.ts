/**
 * A client's process does nothing but wait for remote memory. The process must not end during that time, and
 * must end by itself afterwards. The client runs the built package, because the test counts on a process of
 * its own.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createServer, type HandlerContext } from 'rdma-rpc';
import { memoryOf, type RemoteMemory } from 'rdma-rpc/memory';
import { defineService, method } from 'rdma-rpc/msgpack';
import { expect, test } from 'vitest';

const bundle = (name: string) =>
  JSON.stringify(fileURLToPath(new URL(`../../dist/bundle/${name}.js`, import.meta.url)));
const LenderDefinition = defineService({
  name: 'test.Lender',
  methods: {
    lend: method<Record<string, never>, { memory: RemoteMemory }>(),
    end: method<Record<string, never>, Record<string, never>>(),
  },
});

const client = `
  import { createChannel, createClient } from ${bundle('index')};
  import { connectMemory } from ${bundle('memory')};
  import { defineService, method } from ${bundle('msgpack')};
  const Lender = defineService({ name: 'test.Lender', methods: { lend: method(), end: method() } });
  const channel = createChannel(process.argv[1], { fabric: process.argv[2] });
  const memory = await connectMemory(channel);
  console.log('connected');
  const lender = createClient(Lender, channel);
  const { memory: handle } = await lender.lend({});
  const remote = await memory.open(handle);
  console.log(await remote.fetchAdd(0, 1n), await remote.fetchAdd(0, 1n));
  await lender.end({});
  console.log(await memory.open(handle).then(() => 'opened', ({ codeName }) => codeName));`;

test.each(['shm', 'tcp'] as const)(
  'over %s the process waits for remote memory, and then ends',
  async (fabric) => {
    const server = createServer({ fabric });
    const memories = memoryOf(server);
    let end = (): Promise<void> => Promise.resolve();
    server.add(LenderDefinition, {
      lend: (_, context: HandlerContext) => {
        const memory = memories.of(context);
        const exposure = memory?.expose(memory.alloc(64).bytes, { atomic: true });
        end = async () => exposure?.close();
        return { memory: exposure!.handle };
      },
      end: async () => {
        await end();
        return {};
      },
    });
    try {
      const address = await server.listen('127.0.0.1:0');
      const args = ['--input-type=module', '-e', client, address, fabric];
      const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 });
      expect(stdout.trim().split('\n')).toEqual(['connected', '0n 1n', 'NOT_FOUND']);
    } finally {
      await server.shutdown({ graceMs: 1000 });
    }
  },
);
