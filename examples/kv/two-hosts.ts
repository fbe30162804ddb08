/**
 * The example between two hosts that share only a network: `npm run demo:hosts [-- scale]`. The hosts are two
 * network namespaces of this host, joined by a cable (veth), so that neither shared memory nor an RDMA device
 * is available: the fabric is tcp. It needs root. Where the system does not allow it, it prints "not run"
 * with the reason and ends with 77. The exit code is the client's.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const notRun = 77;
const subnet = { client: '10.77.0.1', server: '10.77.0.2' };
const port = 7000;
const program = (name: string): string => fileURLToPath(new URL(`${name}.js`, import.meta.url));
const [scale = '1', inside] = process.argv.slice(2);

/** Throws an error with the command's output. */
function run(command: string, ...args: string[]): void {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr.trim()}`);
}

/**
 * The flags of a separate network. The server also gets a separate process namespace, so that it cannot open
 * the client's memory. (The server still sees the old /proc, because a new /proc needs a mount, which is not
 * available inside a chroot.)
 */
const network = ['--net', '--kill-child', '--fork', '--'];
const host = ['--pid', ...network];

/** Joins this network and the network of process `pid` by a cable. */
function cable(pid: number): void {
  const there = ['-t', String(pid), '-n', 'ip'];
  run('ip', 'link', 'add', 'kv0', 'type', 'veth', 'peer', 'name', 'kv1', 'netns', String(pid));
  run('ip', 'address', 'add', `${subnet.client}/24`, 'dev', 'kv0');
  run('ip', 'link', 'set', 'kv0', 'up');
  run('nsenter', ...there, 'address', 'add', `${subnet.server}/24`, 'dev', 'kv1');
  run('nsenter', ...there, 'link', 'set', 'kv1', 'up');
}

async function listening(server: ChildProcess): Promise<void> {
  for await (const line of createInterface({ input: server.stdout! })) {
    console.log(line);
    if (line.includes('listening')) return;
  }
  throw new Error('the server has ended');
}

/** This process is on the client's host, and starts the process on the server's host. */
async function hosts(): Promise<number> {
  const server = spawn('unshare', [...host, process.execPath, program('server'), `0.0.0.0:${port}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    await listening(server);
    cable(server.pid!);
    const address = `${subnet.server}:${port}`;
    const client = spawn(process.execPath, [program('client'), address, scale], { stdio: 'inherit' });
    const [code] = (await once(client, 'exit')) as [number | null];
    return code ?? 1;
  } finally {
    server.kill('SIGKILL');
  }
}

function whyNot(): string {
  if (process.getuid?.() !== 0) return 'it needs root, to make network namespaces';
  const { status, stderr, error } = spawnSync(
    'unshare',
    [...host, 'ip', 'link', 'add', 'kv0', 'type', 'veth', 'peer', 'name', 'kv1'],
    { encoding: 'utf8' },
  );
  if (status === 0) return '';
  return `it needs network namespaces and veth (unshare of util-linux, ip of iproute2): ${(error?.message ?? stderr).trim()}`;
}

if (inside === 'inside') {
  process.exitCode = await hosts().catch((error: unknown) => {
    console.error(`the two hosts cannot be had: ${(error as Error).message}`);
    return 1;
  });
} else {
  const why = whyNot();
  if (why === '') {
    const self = [process.execPath, fileURLToPath(import.meta.url), scale, 'inside'];
    process.exitCode = spawnSync('unshare', [...network, ...self], { stdio: 'inherit' }).status ?? 1;
  } else {
    console.log(`not run: ${why}`);
    process.exitCode = notRun;
  }
}
