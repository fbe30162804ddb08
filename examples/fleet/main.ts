/**
 * A fleet by one command: `node dist/examples/fleet/main.js [servers] [restarts] [clients]`. Starts servers
 * as processes and a registry, calls them, rolls them one after another, kills some, prints what clients saw
 * each second, and writes a page at its end. The exit code is 1 when a call has failed.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Clients } from './clients.ts';
import { page, type Second } from './page.ts';
import { fileResolver, publish } from './registry.ts';

const [servers = 3, restarts = 20, clients = 8] = process.argv.slice(2).map(Number);
const folder = mkdtempSync(join(tmpdir(), 'fleet-'));
const list = join(folder, 'addresses.json');
const program = fileURLToPath(new URL('server.js', import.meta.url));

interface Member {
  readonly name: string;
  readonly process: ChildProcess;
  readonly address: string;
}

const members: (Member | undefined)[] = new Array<undefined>(servers).fill(undefined);
const announce = (): void =>
  publish(
    list,
    members.flatMap((member) => (member === undefined ? [] : [member.address])),
  );

async function start(i: number): Promise<void> {
  const name = `server-${i}`;
  const process = fork(program, [name], { execArgv: [] });
  const [address] = (await once(process, 'message')) as [string];
  members[i] = { name, process, address };
  announce();
}

/** Takes a server off the list, lets it drain, and starts it again; with `kill` it just goes. */
async function restart(i: number, kill: boolean): Promise<string> {
  const { name, process } = members[i]!;
  const ended = once(process, 'exit');
  if (kill) process.kill('SIGKILL');
  members[i] = undefined;
  announce();
  if (!kill) process.kill('SIGTERM');
  await ended;
  await start(i);
  return `${name} ${kill ? 'killed' : 'rolled'}`;
}

const seconds: Second[] = [];
let events: string[] = [];
for (let i = 0; i < servers; ++i) await start(i);
const load = new Clients(fileResolver(list), clients);
const names = Array.from({ length: servers }, (_, i) => `server-${i}`);
console.log(['second', ...names, 'p99 ms', 'errors', 'events'].join('\t'));

const tick = setInterval(() => {
  const { answers, errors, p99Ms } = load.take();
  const counts = names.map((name) => answers.get(name) ?? 0);
  const failed = [...errors].map(([code, count]) => `${code} ${count}`).join(' ') || '0';
  const second = { counts, p99Ms, failed, events };
  events = [];
  seconds.push(second);
  console.log([seconds.length, ...counts, p99Ms.toFixed(1), failed, second.events.join(', ')].join('\t'));
}, 1000);

for (let i = 0; i < restarts; ++i) {
  // Each tenth restart is a crash.
  const event = await restart(i % servers, i % 10 === 9);
  events.push(event);
  await new Promise((resolve) => setTimeout(resolve, 100));
}
await new Promise((resolve) => setTimeout(resolve, 1100));
clearInterval(tick);
await load.end();
for (const member of members) member?.process.kill('SIGTERM');
const failed = seconds.filter((second) => second.failed !== '0').length;
const calls = seconds.reduce((sum, { counts }) => sum + counts.reduce((all, count) => all + count, 0), 0);
writeFileSync('fleet.html', page(names, seconds));
rmSync(folder, { recursive: true });
console.log(`${restarts} restarts, ${calls} calls, seconds with failed calls: ${failed}; see fleet.html`);
process.exitCode = failed === 0 ? 0 : 1;
