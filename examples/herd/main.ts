/**
 * Makes PUTs and GETs in the way of HERD: `node dist/examples/herd/main.js [device] [requests]`, with both
 * ends in one process. Devices that have UC and UD (such as sim) use them. Other devices do the same over one
 * reliable connection.
 */
import { openDevice } from 'rdma-rpc/verbs';
import { meetHere } from '../pingpong/meeting.ts';
import { HerdClient } from './client.ts';
import type { Ways } from './link.ts';
import { HerdServer } from './server.ts';

const [device = 'sim', count = '10000'] = process.argv.slice(2);

function waysOf(name: string): Ways {
  using opened = openDevice(name);
  const why = opened.whyNot('uc') ?? opened.whyNot('ud');
  if (why !== undefined) console.log(`${why}; over rc instead`);
  return why === undefined ? 'uc+ud' : 'rc';
}

const ways = waysOf(device);
using server = new HerdServer({ device, ways });
using client = new HerdClient({ device, ways });
const [here, there] = meetHere();
await Promise.all([server.add((mine) => here.swap(mine)), client.connect((mine) => there.swap(mine))]);
const runs = server.run();

const value = Buffer.alloc(32);
let wrong = 0;
const begun = process.hrtime.bigint();
const one = async (i: number): Promise<void> => {
  const key = `key ${i % 100}`;
  const own = Buffer.from(value).fill(i % 100);
  if (i < 100) await client.put(key, own);
  else if (Buffer.compare((await client.get(key)) ?? value, own) !== 0) ++wrong;
};
const together = 10;
for (let i = 0; i < Number(count); i += together)
  await Promise.all(Array.from({ length: together }, (_, k) => one(i + k)));
const seconds = Number(process.hrtime.bigint() - begun) / 1e9;
console.log(`${count} requests over ${ways} on ${device}: ${Math.round(Number(count) / seconds)} a second`);
console.log(`${client.repeated} were written again; ${wrong} answers were wrong`);
process.exitCode = wrong === 0 ? 0 : 1;
server[Symbol.dispose]();
await runs;
