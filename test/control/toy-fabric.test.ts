/**
 * Tests a fabric that exists only in this file: an entry of the table, and native code that accepts its name.
 * The table entry determines everything else that a new fabric needs (CONTRIBUTING, "A fabric").
 */
import { createChannel, createClient, createServer, Status } from 'rdma-rpc';
import { expect, test, vi } from 'vitest';
import { type Fabric, type FabricRow, fabricNames, fabrics } from '../../runtime/fabrics.ts';
import { loadNative } from '../../runtime/native/native.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { socketPath } from '../runtime/world.ts';

const rows: Record<string, FabricRow> = fabrics;
rows['toy-net'] = fabrics.tcp;
rows['toy-fd'] = fabrics['shm-fd'];
fabricNames.unshift('toy-net' as Fabric, 'toy-fd' as Fabric);

/** The fabrics that native code uses under these names. */
const built = new Map<unknown, 'tcp' | 'shm-fd'>([
  ['toy-net', 'tcp'],
  ['toy-fd', 'shm-fd'],
]);
const native = loadNative();
const { createContext } = native;
vi.spyOn(native, 'createContext').mockImplementation((options) =>
  createContext({ ...options, fabric: built.get(options.fabric) ?? options.fabric }),
);

async function answered(fabric: string, address: string): Promise<object> {
  const options = { fabric: fabric as 'tcp', log: () => undefined };
  const server = createServer(options);
  server.add(EchoDefinition, { echo: ({ text, payload }) => ({ text, payload: payload.slice() }) });
  try {
    const channel = createChannel(await server.listen(address), options);
    try {
      const { echo } = createClient(EchoDefinition, channel);
      const small = await echo({ text: 'small' });
      const large = await echo({ payload: new Uint8Array(300_000).fill(7) });
      return { fabric: channel.fabric, small: small.text, large: large.payload.at(-1) };
    } finally {
      await channel.close();
    }
  } finally {
    await server.shutdown();
  }
}

test.each<[string, () => string]>([
  ['toy-net', () => '127.0.0.1:0'],
  ['toy-fd', () => `unix:${socketPath()}`],
])('%s carries calls of all sizes by its row alone', async (fabric, address) => {
  expect(await answered(fabric, address())).toEqual({ fabric, small: 'small', large: 7 });
});

test('an address that a fabric cannot dial is refused by the row, with the reason', async () => {
  await expect(answered('toy-fd', '127.0.0.1:0')).rejects.toMatchObject({
    code: Status.UNAVAILABLE,
    message: expect.stringMatching(/toy-fd: memory is shared .* by a unix socket only/),
  });
});

test('auto begins with the first row', async () => {
  expect(await answered('auto', '127.0.0.1:0')).toMatchObject({ fabric: 'toy-net' });
});
