/**
 * The cache's client. `node dist/examples/kv/client.js <address> [scale]` runs the load against a server and
 * prints the results. demo.ts starts it, or a user starts it in a second terminal. It exits with 1 when any
 * answer was wrong.
 */
import { configure, createChannel, createClient, stats } from 'rdma-rpc';
import { KvDefinition } from './gen/kv.rdma.ts';
import { runLoad, sizeClasses } from './load.ts';
import { callMs, connectMs, sentence } from './patience.ts';
import { showProgress } from './progress.ts';
import { callTable, summary, travelTable } from './report.ts';
import { arenaBytes, messageMax } from './sizes.ts';
import { travelRows } from './transport.ts';

const [address, scale = '1'] = process.argv.slice(2);
if (address === undefined) {
  console.error('usage: client.js <address> [scale]: the address is what the server printed');
  process.exit(2);
}

/** Resolves to whether every answer was right. */
async function run(address: string): Promise<boolean> {
  const channel = createChannel(address, { messageMaxBytes: messageMax, connectTimeoutMs: connectMs });
  try {
    await channel.ready({ timeoutMs: connectMs });
    const { fabric, device, exposure } = channel.session!;
    console.log(
      `client ${process.pid} over ${fabric}${device === fabric ? '' : ` on ${device}`} (${exposure})`,
    );
    const kv = createClient(KvDefinition, channel);
    const report = await runLoad(kv, sizeClasses(Number(scale)), showProgress);
    const { transport, entries } = await kv.stats({}, { timeoutMs: callMs });
    if (entries !== 0)
      report.errors.push(`${entries} entries are left in the store, though every key was deleted`);
    const server = Object.fromEntries(
      Object.entries(transport).map(([name, value]) => [name, Number(value)]),
    );

    console.log(`\n${callTable(report)}\n`);
    console.log(`${travelTable(travelRows({ ...stats() }, server))}\n`);
    console.log(summary(report));
    return report.errors.length === 0;
  } finally {
    await channel.close();
  }
}

configure({ arenaBytes });
try {
  process.exitCode = (await run(address)) ? 0 : 1;
} catch (error) {
  console.error(`the client gives up: ${sentence(error)}`);
  process.exitCode = 1;
}
if (process.connected) process.disconnect();
