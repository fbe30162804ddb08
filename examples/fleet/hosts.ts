/**
 * Determines where the servers of the fleet run. Each is either in its own network namespace, joined to this
 * namespace by a cable (veth), or an ordinary process of this host. A server in a namespace is cut off by
 * taking down its end of the cable. Packets are then lost, as with a broken switch. An ordinary process is
 * stopped instead. main.ts uses this file.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';

export interface Place {
  readonly process: ChildProcess;
  /** Joins the namespace when its process runs. */
  connect(): void;
  cutOff(cut: boolean): void;
}

export interface Hosts {
  /** The line about the hosts that the fleet prints at the beginning. */
  readonly text: string;
  /**
   * Starts a program. Its arguments may depend on two hosts: the host on which it listens and is reached, and
   * the host under which it reaches this process.
   */
  start(program: string, args: (host: string, outside: string) => readonly string[]): Place;
}

type Stdio = 'ignore' | 'inherit' | 'ipc';
const stdio: Stdio[] = ['ignore', 'inherit', 'inherit', 'ipc'];

/** Throws an error with the command's output. */
function run(command: string, ...args: string[]): void {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr.trim()}`);
}

/** Processes of this host. */
export const plainHosts: Hosts = {
  text: 'servers are plain processes, which are stopped (SIGSTOP) to cut them off',
  start(program, args) {
    const child = spawn(process.execPath, [program, ...args('127.0.0.1', '127.0.0.1')], { stdio });
    return {
      process: child,
      connect: () => undefined,
      cutOff: (cut) => child.kill(cut ? 'SIGSTOP' : 'SIGCONT'),
    };
  },
};

/**
 * Returns the addresses of the two ends of cable `n`, in a network of four addresses. A number is never used
 * again.
 */
export function endsOf(n: number): readonly [here: string, there: string] {
  const address = (end: number): string => `10.${77 + (n >> 14)}.${(n >> 6) & 255}.${((n & 63) << 2) + end}`;
  return [address(1), address(2)];
}

/** Network namespaces of the namespace in which this process is (see `inNamespace`). */
export function namespaceHosts(): Hosts {
  let cables = 0;
  return {
    text: 'each server has a network namespace, whose cable is taken down to cut it off',
    start(program, args) {
      const n = cables++;
      const [here, there] = endsOf(n);
      // No fork is made, so that the process is the server itself.
      const child = spawn('unshare', ['--net', '--', process.execPath, program, ...args(there, here)], {
        stdio,
        // The servers are on this host, so that they and the gateway would share memory.
        env: { ...process.env, RDMA_RPC_FABRIC: 'tcp' },
      });
      const inside = ['-t', String(child.pid), '-n', 'ip'];
      return {
        process: child,
        connect() {
          const name = `fleet${n}`;
          run('ip', 'link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(child.pid));
          run('ip', 'address', 'add', `${here}/30`, 'dev', name);
          run('ip', 'link', 'set', name, 'up');
          run('nsenter', ...inside, 'address', 'add', `${there}/30`, 'dev', 'eth0');
          run('nsenter', ...inside, 'link', 'set', 'eth0', 'up');
        },
        cutOff: (cut) => run('nsenter', ...inside, 'link', 'set', 'eth0', cut ? 'down' : 'up'),
      };
    },
  };
}

/** The environment variable that says that this process is in the namespace of the fleet. */
const marker = 'RDMA_RPC_FLEET_NAMESPACE';
/** Runs as root, or as root of a user namespace, which some systems let every user create. */
const flags = process.getuid?.() === 0 ? ['--net'] : ['--user', '--map-root-user', '--net'];

/** Returns the reason why this user cannot make namespaces and cables here, or '' when it can. */
export function whyNoNamespaces(): string {
  const trial = 'ip link add f0 type veth peer name f1 && unshare --net -- true';
  const { error, status, stderr } = spawnSync('unshare', [...flags, '--', 'sh', '-c', trial], {
    encoding: 'utf8',
  });
  if (error !== undefined) return error.message;
  return status === 0 ? '' : stderr.trim().split('\n')[0] || `unshare ended with ${status}`;
}

/**
 * Runs this program again in a network namespace and resolves with its exit code. Resolves to undefined in
 * that namespace, and to the reason where the user cannot create namespaces.
 */
export async function inNamespace(
  program: string,
  args: readonly string[],
): Promise<number | string | undefined> {
  if (process.env[marker] !== undefined) {
    run('ip', 'link', 'set', 'lo', 'up');
    // End this process when the process that started it is gone. The process that started it waits for the
    // end of this process, so the connection between the two must not keep this process alive. In Node, a
    // connection keeps the process alive once its end has a listener.
    process.once('disconnect', () => process.exit(1));
    process.channel?.unref();
    return undefined;
  }
  const why = whyNoNamespaces();
  if (why !== '') return why;
  const child = spawn('unshare', [...flags, '--', process.execPath, program, ...args], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, [marker]: '1' },
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? 1;
}
