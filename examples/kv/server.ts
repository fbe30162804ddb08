/**
 * The cache's server: `node dist/examples/kv/server.js [address]`. By default it listens on a unix socket of
 * its own. It ends on SIGINT or SIGTERM, or together with the process that started it (demo.ts).
 */
import { createServer, type Server, stats } from 'rdma-rpc';
import { KvDefinition } from './gen/kv.rdma.ts';
import { connectMs, sentence } from './patience.ts';
import { kvHandlers } from './service.ts';
import { messageMax } from './sizes.ts';

const defaultBudgetMib = 256;

function budgetBytes(): number {
  const mib = Number(process.env.KV_BUDGET_MIB ?? defaultBudgetMib);
  if (!Number.isFinite(mib) || mib <= 0) throw new Error('KV_BUDGET_MIB must be a number of MiB above 0');
  return mib * 1024 * 1024;
}

function transport(): Record<string, bigint> {
  return Object.fromEntries(Object.entries(stats()).map(([name, value]) => [name, BigInt(value)]));
}

async function start(): Promise<Server> {
  const made = createServer({ messageMaxBytes: messageMax, handshakeTimeoutMs: connectMs });
  made.add(KvDefinition, kvHandlers(budgetBytes(), transport));
  const address = await made.listen(process.argv[2] ?? `unix:/tmp/rdma-rpc-kv-${process.pid}.sock`);
  if (process.send === undefined) console.log(`kv: listening on ${address}`);
  else process.send({ address });
  return made;
}

const server = await start().catch((error: unknown) => {
  console.error(`the server cannot start: ${sentence(error)}`);
  process.exit(1);
});

let stopping = false;
async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  await server.shutdown({ graceMs: 1000 });
  if (process.connected) process.disconnect();
}
process.on('SIGINT', stop);
process.on('SIGTERM', stop);
process.on('disconnect', stop);
