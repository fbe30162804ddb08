/**
 * A server in a network namespace of its own, with a cable (veth) between it and this process, for tests of
 * bad networks: what they do to the cable and to what comes through it needs root, and no RDMA device.
 */
import { spawnSync } from 'node:child_process';
import { ServerProcess } from '../runtime/process/processes.ts';

/** Throws with what the command said. */
export function run(command: string, ...args: string[]): void {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr.trim()}`);
}

export class Cable {
  /** Its ends, as network interfaces. */
  readonly near: string;
  readonly far: string;
  /** Of the server. */
  readonly address: string;
  readonly #nearIp: string;
  readonly #farIp: string;
  #server: ServerProcess | undefined;

  /** `net`: the third number of its addresses, its own among all cables. */
  constructor(name: string, net: number, port: number) {
    this.near = `${name}0`;
    this.far = `${name}1`;
    this.#nearIp = `10.78.${net}.1`;
    this.#farIp = `10.78.${net}.2`;
    this.address = `${this.#farIp}:${port}`;
  }

  /**
   * Why `trial`, commands of a shell in a namespace of their own, with the cable, cannot be run here; empty
   * when they can.
   */
  whyNot(trial: string): string {
    if (process.getuid?.() !== 0) return 'it needs root, to make network namespaces';
    const commands = `modprobe -q -a veth sch_netem; ip link add ${this.near} type veth peer name ${this.far} && ${trial}`;
    const { status, stderr, error } = spawnSync('unshare', ['--net', 'sh', '-c', commands], {
      encoding: 'utf8',
    });
    return status === 0 ? '' : (error?.message ?? stderr).trim().split('\n').join('; ');
  }

  /** Starts the server, and lays the cable. */
  async start(): Promise<void> {
    const env = { ...process.env, RDMA_RPC_FABRIC: 'tcp' };
    const execArgv = ['--net', '--', process.execPath];
    const port = this.address.slice(this.address.indexOf(':') + 1);
    const server = await ServerProcess.start(`0.0.0.0:${port}`, {}, { env, execPath: 'unshare', execArgv });
    this.#server = server;
    run(
      'ip',
      'link',
      'add',
      this.near,
      'type',
      'veth',
      'peer',
      'name',
      this.far,
      'netns',
      `${server.child.pid}`,
    );
    run('ip', 'address', 'add', `${this.#nearIp}/24`, 'dev', this.near);
    run('ip', 'link', 'set', this.near, 'up');
    this.atServer('ip', 'address', 'add', `${this.#farIp}/24`, 'dev', this.far);
    this.atServer('ip', 'link', 'set', this.far, 'up');
  }

  /** Runs a command in the server's namespace. */
  atServer(...command: string[]): void {
    run('nsenter', '-t', `${this.#server!.child.pid}`, '-n', ...command);
  }

  /** The cable goes with the server's namespace. */
  async end(): Promise<void> {
    await this.#server?.kill();
  }
}
