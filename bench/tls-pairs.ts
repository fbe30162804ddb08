/**
 * Measures the share of calls/s that TLS on the address costs, which is less than the difference between
 * rounds of a second. Both sides run in one process and make small calls over tcp. Blocks of calls go in turn
 * through a session with TLS and a session without TLS, until the result is significant. A third session,
 * also without TLS, shows what the method reports where no difference exists.
 *
 *   node dist/bench/tls-pairs.js [PAIRS] [CALLS]
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Client, configure, createChannel, createClient, createServer, type ServerTls } from 'rdma-rpc';
import { Credentials } from './credentials.ts';
import { BenchDefinition } from './gen/bench.rdma.ts';

const inFlight = 256;
const warmUpBlocks = 10;
const [pairs = 200, calls = 20_000] = process.argv.slice(2).map(Number);

async function open(tls?: ServerTls): Promise<Client<typeof BenchDefinition>> {
  const options = { fabric: 'tcp', log: () => undefined, ...(tls && { tls }) } as const;
  const server = createServer(options).add(BenchDefinition, { echo: (request) => request });
  const channel = createChannel(await server.listen('127.0.0.1:0'), { ...options, timeoutMs: 30_000 });
  await channel.ready();
  return createClient(BenchDefinition, channel);
}

interface Spent {
  readonly cpuUs: number;
  readonly ms: number;
}

async function block(client: Client<typeof BenchDefinition>): Promise<Spent> {
  const message = { payload: new Uint8Array(32), id: 1 };
  let left = calls;
  const worker = async (): Promise<void> => {
    while (left-- > 0) await client.echo(message);
  };
  const [before, start] = [process.cpuUsage(), performance.now()];
  await Promise.all(Array.from({ length: inFlight }, worker));
  const { user, system } = process.cpuUsage(before);
  return { cpuUs: user + system, ms: performance.now() - start };
}

const quartiles = (ratios: number[]): string => {
  ratios.sort((one, other) => one - other);
  const [low, middle, high] = [0.25, 0.5, 0.75].map((part) =>
    ratios[Math.floor(part * (ratios.length - 1))]!.toFixed(3),
  );
  return `${middle} (quartiles ${low} and ${high})`;
};

configure({ polling: 'busy' });
const credentials = new Credentials();
const file = (name: string): string => readFileSync(join(credentials.folder, `${name}.pem`), 'utf8');
const mutual = { ca: file('ca'), cert: file('cert'), key: file('key') };
credentials.remove();
const without = await open();
const others = { 'with TLS': await open(mutual), 'without, another one': await open() };
for (let i = 0; i < warmUpBlocks; ++i)
  for (const client of [without, ...Object.values(others)]) await block(client);
const found = Object.keys(others).map((name) => ({ name, rate: [] as number[], cpu: [] as number[] }));
for (let pair = 0; pair < pairs; ++pair) {
  for (const [at, client] of Object.values(others).entries()) {
    // The order alternates, so that the inner blocks run on a machine as warm as for the outer blocks.
    const [outer, inner] = pair % 2 === 0 ? [without, client] : [client, without];
    const [first, second, third, fourth] = [
      await block(outer),
      await block(inner),
      await block(inner),
      await block(outer),
    ];
    const around = { ms: first.ms + fourth.ms, cpuUs: first.cpuUs + fourth.cpuUs };
    const within = { ms: second.ms + third.ms, cpuUs: second.cpuUs + third.cpuUs };
    const [plain, other] = pair % 2 === 0 ? [around, within] : [within, around];
    found[at]!.rate.push(plain.ms / other.ms);
    found[at]!.cpu.push(plain.cpuUs / other.cpuUs);
  }
}
for (const { name, rate, cpu } of found)
  console.log(`${name}: calls/s ${quartiles(rate)}, per CPU ${quartiles(cpu)} of those without`);
process.exit();
