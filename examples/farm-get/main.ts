/**
 * Makes GETs of values that the server overwrites all the time: `node dist/examples/farm-get/main.js [device]
 * [GETs]`. The device is `sim` (default, in one process), `shm`, `tcp` or an RDMA device; with these the
 * server is a separate process. Each value consists of one repeated number, so that a value made of two
 * writes is noticed.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { createChannel, createServer } from 'rdma-rpc';
import { FarmClient } from './client.ts';
import { StoreDefinition } from './gen/farm.rdma.ts';
import { openFarm } from './service.ts';

const keys = Array.from({ length: 16 }, (_, i) => `key ${i}`);
const valueBytes = 1000;
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * Serves until `stops` resolves. While GETs run, the server overwrites one value after another, each in
 * several event-loop iterations.
 */
async function serve(
  device: string,
  onListening: (address: string) => void,
  stops: Promise<unknown>,
): Promise<void> {
  using farm = openFarm({ device, slots: 256, valueMax: valueBytes });
  let writes = true;
  for (const key of keys) for (const _ of farm.table.put(key, new Uint8Array(valueBytes)));
  const server = createServer().add(StoreDefinition, farm.handlers);
  onListening(await server.listen(`unix:/tmp/rdma-rpc-farm-${process.pid}.sock`));
  const writer = (async () => {
    for (let n = 1; writes; ++n) {
      const value = new Uint8Array(new Uint32Array(valueBytes / 4).fill(n).buffer);
      for (const _ of farm.table.put(keys[n % keys.length]!, value))
        if (Math.random() < 0.1) await nextTurn();
    }
  })();
  await stops;
  writes = false;
  await writer;
  await server.shutdown({ graceMs: 100 });
}

/** Returns the number of GETs that brought parts of two values, which should be 0. */
async function get(address: string, device: string, count: number): Promise<number> {
  const channel = createChannel(address);
  using client = await FarmClient.open(channel, device);
  let mixed = 0;
  const one = async (i: number): Promise<void> => {
    const value = await client.get(keys[i % keys.length]!);
    const words = new Uint32Array(value!.slice().buffer);
    if (words.some((word) => word !== words[0])) ++mixed;
  };
  const begun = process.hrtime.bigint();
  const together = 16;
  for (let i = 0; i < count; i += together) {
    await Promise.all(Array.from({ length: together }, (_, k) => one(i + k)));
    await nextTurn();
  }
  const seconds = Number(process.hrtime.bigint() - begun) / 1e9;
  console.log(`${count} GETs of ${valueBytes} bytes on ${device}: ${Math.round(count / seconds)} a second`);
  console.log(`${client.torn} READs met a write and were repeated; ${mixed} values were mixed`);
  await channel.close();
  return mixed;
}

const [device = 'sim', count = '10000', role] = process.argv.slice(2);
if (role === 'server') {
  await serve(device, (address) => process.send!({ address }), once(process, 'disconnect'));
} else if (device === 'sim') {
  let stop: () => void = () => undefined;
  const stops = new Promise<void>((resolve) => {
    stop = resolve;
  });
  const address = await new Promise<string>((resolve) => void serve(device, resolve, stops));
  process.exitCode = (await get(address, device, Number(count))) === 0 ? 0 : 1;
  stop();
} else {
  const server = fork(fileURLToPath(import.meta.url), [device, count, 'server']);
  const [{ address }] = (await once(server, 'message')) as [{ address: string }];
  process.exitCode = (await get(address, device, Number(count))) === 0 ? 0 : 1;
  server.disconnect();
}
