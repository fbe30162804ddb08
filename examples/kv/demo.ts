/**
 * The demo starts the server and the client of this folder as two processes, and exits with the client's exit
 * code. Run `npm run demo`, or `node dist/examples/kv/demo.js [scale]`, where scale multiplies the load.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { sentence } from './patience.ts';

/** Time in milliseconds after which a line tells what the demo is waiting for. */
const noticeMs = 10_000;
const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const scale = process.argv[2] ?? '1';

type End = [code: number | null, signal: string | null];
const howItEnded = ([code, signal]: End): string =>
  signal === null ? `ended with code ${code}` : `was ended by ${signal}`;

/**
 * Resolves as soon as the server listens, without a time limit. Rejects when the server has ended instead.
 */
async function addressOf(server: ChildProcess, gone: Promise<End>): Promise<string> {
  const notice = setTimeout(() => console.error('waiting for the server to listen ...'), noticeMs);
  try {
    const started = once(server, 'message') as Promise<[{ address: string }]>;
    const ended = gone.then((end) => {
      throw new Error(`the server ${howItEnded(end)} before it listened`);
    });
    const [message] = await Promise.race([started, ended]);
    return message.address;
  } finally {
    clearTimeout(notice);
  }
}

console.log('A key-value cache over RDMA: server and client are two processes.');
const server = fork(script('./server.js'), { env: { ...process.env, KV_BUDGET_MIB: '256' } });
const serverGone = once(server, 'exit') as Promise<End>;
try {
  const address = await addressOf(server, serverGone);
  console.log(`server ${server.pid} on ${address}`);
  const client = fork(script('./client.js'), [address, scale]);
  const end = (await once(client, 'exit')) as End;
  if (end[1] !== null) throw new Error(`the client ${howItEnded(end)}`);
  process.exitCode = end[0] ?? 1;
} catch (error) {
  console.error(`the demo is over: ${sentence(error)}`);
  process.exitCode = 1;
} finally {
  if (server.connected) server.disconnect();
  await serverGone;
}
