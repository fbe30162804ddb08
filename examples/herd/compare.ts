/**
 * Prints the table of README.md: a GET by READ (farm-get), by an ordinary call, and in the way of HERD, for
 * the value sizes of the papers. Run `node dist/examples/herd/compare.js [device …]`; the default is `sim
 * shm`. On `sim` both ends are in one process. On other devices the server is a separate process, whose CPU
 * time is shown.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { createChannel, createClient, createServer } from 'rdma-rpc';
import { openDevice } from 'rdma-rpc/verbs';
import { FarmClient } from '../farm-get/client.ts';
import { StoreDefinition } from '../farm-get/gen/farm.rdma.ts';
import { openFarm } from '../farm-get/service.ts';
import { dial, listen, type Meeting } from '../pingpong/meeting.ts';
import { HerdClient } from './client.ts';
import type { Ways } from './link.ts';
import { HerdServer } from './server.ts';

const designs = ['READ', 'call', 'HERD'] as const;
type Design = (typeof designs)[number];
const sizes = [32, 256, 960] as const;
const key = 'a key';
const depth = 16;
const samples = 2000;
const rateMs = 1000;

function waysOf(device: string): Ways {
  using opened = openDevice(device);
  return opened.whyNot('uc') === undefined && opened.whyNot('ud') === undefined ? 'uc+ud' : 'rc';
}

/** Serves one design. `tell` gets the address or the port to which the client must connect. */
async function serve(
  design: Design,
  device: string,
  size: number,
  tell: (where: string) => void,
): Promise<() => Promise<void>> {
  const value = new Uint8Array(size).fill(1);
  if (design === 'HERD') {
    const herd = new HerdServer({ device, ways: waysOf(device), slotsEach: depth });
    herd.values.set(key, value);
    const coming = listen(0, (port) => tell(String(port)));
    const added = coming.then((meeting: Meeting) =>
      herd.add((mine) => meeting.swap(mine)).finally(() => meeting.close()),
    );
    const runs = added.then(() => herd.run());
    return async () => {
      herd[Symbol.dispose]();
      await runs;
    };
  }
  const farm = openFarm({ device, slots: 64, valueMax: size });
  for (const _ of farm.table.put(key, value));
  const server = createServer().add(StoreDefinition, farm.handlers);
  tell(await server.listen(`unix:/tmp/rdma-rpc-compare-${process.pid}.sock`));
  return async () => {
    await server.shutdown({ graceMs: 100 });
    farm[Symbol.dispose]();
  };
}

interface Getter {
  get(): Promise<Uint8Array | undefined>;
  close(): Promise<void>;
}

async function client(design: Design, device: string, where: string): Promise<Getter> {
  if (design === 'HERD') {
    const herd = new HerdClient({ device, ways: waysOf(device), slotsEach: depth });
    const meeting = await dial('127.0.0.1', Number(where));
    await herd.connect((mine) => meeting.swap(mine));
    return { get: () => herd.get(key), close: async () => herd[Symbol.dispose]() };
  }
  const channel = createChannel(where);
  if (design === 'call') {
    const store = createClient(StoreDefinition, channel);
    return { get: async () => (await store.get({ key })).value, close: () => channel.close() };
  }
  const farm = await FarmClient.open(channel, device, { depth });
  return {
    get: () => farm.get(key),
    close: async () => {
      farm[Symbol.dispose]();
      await channel.close();
    },
  };
}

async function latencyUs({ get }: Getter): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < samples; ++i) {
    const begun = process.hrtime.bigint();
    await get();
    times.push(Number(process.hrtime.bigint() - begun) / 1000);
  }
  return times.sort((a, b) => a - b)[samples / 2]!;
}

/** Returns the number of GETs per second, with `depth` of them in flight. */
async function rate({ get }: Getter, size: number): Promise<number> {
  let done = 0;
  const end = Date.now() + rateMs;
  const worker = async (): Promise<void> => {
    while (Date.now() < end) {
      if ((await get())?.byteLength !== size) throw new Error('a GET has brought another value');
      ++done;
    }
  };
  await Promise.all(Array.from({ length: depth }, worker));
  return (done * 1000) / rateMs;
}

/** Returns the CPU time of the server so far, in us, or undefined where the server is in this process. */
async function cpuUs(server: ChildProcess | undefined): Promise<number | undefined> {
  if (server === undefined) return undefined;
  server.send('cpu');
  const [{ cpu }] = (await once(server, 'message')) as [{ cpu: number }];
  return cpu;
}

async function row(design: Design, device: string, size: number): Promise<void> {
  let server: ChildProcess | undefined;
  let stop: (() => Promise<void>) | undefined;
  let where = '';
  if (device === 'sim') {
    let tell: (where: string) => void = () => undefined;
    const told = new Promise<string>((resolve) => {
      tell = resolve;
    });
    stop = await serve(design, device, size, tell);
    where = await told;
  } else {
    server = fork(fileURLToPath(import.meta.url), ['server', design, device, String(size)]);
    where = ((await once(server, 'message')) as [{ where: string }])[0].where;
  }
  const getter = await client(design, device, where);
  const latency = await latencyUs(getter);
  const before = await cpuUs(server);
  const each = await rate(getter, size);
  const after = await cpuUs(server);
  const cpu =
    before === undefined || after === undefined
      ? '-'
      : ((after - before) / ((each * rateMs) / 1000)).toFixed(1);
  const name = design === 'HERD' ? `HERD over ${waysOf(device)}` : design;
  console.log(`| ${device} | ${size} | ${name} | ${latency.toFixed(1)} | ${Math.round(each)} | ${cpu} |`);
  await getter.close();
  await stop?.();
  server?.disconnect();
  if (server !== undefined && server.exitCode === null) await once(server, 'exit');
}

async function child([design, device, size]: string[]): Promise<void> {
  const stop = await serve(design as Design, device!, Number(size), (where) => process.send!({ where }));
  process.on('message', () => {
    const { user, system } = process.cpuUsage();
    process.send!({ cpu: user + system });
  });
  await once(process, 'disconnect');
  await stop();
}

const [first, ...rest] = process.argv.slice(2);
if (first === 'server') {
  await child(rest);
} else {
  const devices = first === undefined ? ['sim', 'shm'] : [first, ...rest];
  console.log('| device | bytes | GET by | latency, us | GETs a second, 16 at once | server CPU, us a GET |');
  console.log('| --- | --- | --- | --- | --- | --- |');
  for (const device of devices)
    for (const size of sizes) for (const design of designs) await row(design, device, size);
}
