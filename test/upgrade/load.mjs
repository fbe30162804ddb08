/**
 * Runs a client of one build that calls without pause, as a process: `load.mjs ADDRESS,ADDRESS… OPTIONS`.
 * builds.mjs copies it into each build. The client prints a line with the number of its calls a few times a
 * second. After SIGTERM it finishes the calls in progress, and prints as JSON how many calls it made and
 * which have failed.
 */
import { createChannel, createClient } from 'rdma-rpc';
import { UpgradeDefinition } from './gen/upgrade.rdma.js';

const [addresses, options] = process.argv.slice(2);
const reportMs = 100;
const timeoutMs = 30_000;

const channel = createChannel(addresses.split(','), JSON.parse(options));
const client = createClient(UpgradeDefinition, channel, { '*': { timeoutMs } });
const small = Buffer.alloc(100, 1);
const large = Buffer.alloc(300_000, 2);
let calls = 0;
let stopping = false;
const failures = [];

function same(got, wanted) {
  if (Buffer.compare(got, wanted) !== 0) throw new Error(`${got.length} bytes came back that differ`);
}

const kinds = {
  async 'small unary'() {
    same((await client.echo({ data: small })).data, small);
  },
  async 'large unary'() {
    same((await client.echo({ data: large })).data, large);
  },
  async 'server stream'() {
    let number = 0;
    for await (const { data } of client.repeat({ number: 10, data: small })) {
      same(data, small);
      ++number;
    }
    if (number !== 10) throw new Error(`${number} messages instead of 10`);
  },
  async 'client stream'() {
    const parcels = [{ data: small }, { data: large }];
    const { number, data } = await client.collect(parcels);
    same(data, large);
    if (number !== parcels.length) throw new Error(`${number} messages instead of ${parcels.length}`);
  },
  async 'bidirectional stream'() {
    for await (const { data } of client.exchange([{ data: small }, { data: small }])) same(data, small);
  },
  async 'one-way'() {
    await client.leave({ number: 1, data: small });
  },
};

async function endless(kind, call) {
  while (!stopping) {
    try {
      await call();
    } catch (error) {
      failures.push(`${kind}: ${error.message} (processed: ${error.processed})`);
    }
    ++calls;
  }
}

process.once('SIGTERM', () => {
  stopping = true;
});
await channel.ready();
const report = setInterval(() => console.log(calls), reportMs);
await Promise.all(Object.entries(kinds).map(([kind, call]) => endless(kind, call)));
clearInterval(report);
const { fabric } = channel;
await channel.close();
console.log(JSON.stringify({ calls, failures, fabric }));
