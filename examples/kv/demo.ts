/**
 * The demo: starts the server and the client of this folder as two processes and exits as the client does. `npm run demo`, or
 * `node dist/examples/kv/demo.js [scale]`, where scale multiplies the load.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const startMaxMs = 10_000;
const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const scale = process.argv[2] ?? '1';

async function addressOf(server: ChildProcess): Promise<string> {
  const stop = new AbortController();
  try {
    const started = once(server, 'message', { signal: stop.signal }) as Promise<[{ address: string }]>;
    const ended = once(server, 'exit', { signal: stop.signal }).then(([code]) => {
      throw new Error(`the server ended with ${code} before it listened`);
    });
    const late = AbortSignal.timeout(startMaxMs);
    late.addEventListener('abort', () =>
      stop.abort(new Error(`the server did not listen within ${startMaxMs} ms`)),
    );
    const [message] = await Promise.race([started, ended]);
    return message.address;
  } finally {
    stop.abort();
  }
}

console.log('A key-value cache over RDMA (shared memory on this host): server and client are two processes.');
const server = fork(script('./server.js'), { env: { ...process.env, KV_BUDGET_MIB: '256' } });
const serverGone = once(server, 'exit');
try {
  const address = await addressOf(server);
  console.log(`server ${server.pid} on ${address}`);
  const client = fork(script('./client.js'), [address, scale]);
  const [code] = await once(client, 'exit');
  process.exitCode = code ?? 1;
} finally {
  if (server.connected) server.disconnect();
  await serverGone;
}
