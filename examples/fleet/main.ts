/**
 * Runs a fleet by one command: `node dist/examples/fleet/main.js`; options.ts has the options. Starts a
 * registry, servers, a gateway and clients, then rolls, kills and cuts off servers one after another. Shows
 * the clients' results each second, and writes a page at the end. The exit code is 1 when a call has failed.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { hasEtcd, howToInstall } from './etcd.ts';
import { Fleet } from './fleet.ts';
import { inNamespace, namespaceHosts, plainHosts } from './hosts.ts';
import { Callers } from './load.ts';
import { type FleetOptions, optionsOf, usage } from './options.ts';
import { page } from './page.ts';
import { errorsOf, lineOf, type Second, tableOf } from './table.ts';

/** The pause in ms between two events, in which all servers run. */
const quietMs = 200;

/**
 * One event in ten kills a server, and one cuts a server off. The other events roll a server, as a deployment
 * does.
 */
async function happen(fleet: Fleet, n: number, cutMs: number): Promise<string> {
  const name = fleet.names[n % fleet.names.length]!;
  if (n % 10 === 4) {
    await fleet.cut(name, cutMs);
    return `${name} was cut off for ${cutMs} ms`;
  }
  if (n % 10 === 9) {
    await fleet.kill(name);
    return `${name} killed`;
  }
  await fleet.roll(name);
  return `${name} rolled`;
}

/** Runs the fleet, and returns the results of each second. */
async function run(fleet: Fleet, options: FleetOptions): Promise<Second[]> {
  const seconds: Second[] = [];
  let events: string[] = [];
  const load = new Callers(fleet.url, options.clients);
  const { isTTY } = process.stdout;
  if (!isTTY) console.log(['second', ...fleet.names, 'p99 ms', 'errors', 'events'].join('\t'));

  const show = async (): Promise<void> => {
    seconds.push({ ...load.take(), events });
    events = [];
    if (!isTTY) {
      console.log(lineOf(fleet.names, seconds));
      return;
    }
    const rows = fleet.names.map((name) => ({ name, address: fleet.addressOf(name) }));
    console.log(`\x1b[H\x1b[J${tableOf(rows, await fleet.seen(), seconds).join('\n')}`);
  };
  const tick = setInterval(() => void show().catch(() => undefined), 1000);
  try {
    for (let n = 0; n < options.events; ++n) {
      const event = await happen(fleet, n, options.cut);
      events.push(event);
      await pause(quietMs);
    }
  } finally {
    clearInterval(tick);
    await load.end();
    await show();
  }
  return seconds;
}

async function main(options: FleetOptions, args: readonly string[]): Promise<number> {
  const inside = options.plain ? '--plain' : await inNamespace(fileURLToPath(import.meta.url), args);
  if (typeof inside === 'number') return inside;
  const hosts = inside === undefined ? namespaceHosts() : plainHosts;
  const withEtcd = !options.file && hasEtcd();
  const why = inside === undefined || options.plain ? '' : ` (no namespaces: ${inside})`;
  console.log(`${options.servers} servers: ${hosts.text}${why}`);
  console.log(`registry: ${withEtcd ? 'etcd' : options.file ? 'a file' : howToInstall}`);
  const folder = mkdtempSync(join(tmpdir(), 'fleet-'));
  try {
    const fleet = await Fleet.start(options.servers, hosts, folder, withEtcd);
    const seconds = await run(fleet, options).finally(() => fleet.end());
    const failed = seconds.filter((second) => errorsOf(second) !== '0').length;
    const calls = seconds.reduce(
      (sum, { answers }) => [...answers.values()].reduce((all, n) => all + n, sum),
      0,
    );
    writeFileSync(options.page, page(fleet.names, seconds));
    console.log(
      `${options.events} events, ${calls} calls, seconds with failed calls: ${failed}; see ${options.page}`,
    );
    return failed === 0 ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

// Without these handlers the listeners of `exit`, which end the other processes, would not be called.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
const args = process.argv.slice(2);
let options: FleetOptions | undefined;
try {
  options = optionsOf(args);
  process.exitCode = await main(options, args);
} catch (error) {
  console.error((error as Error).message);
  if (options === undefined) console.error(`\n${usage}`);
  process.exitCode = 2;
}
