/**
 * Starts a server in a network namespace of its own, and makes a cable (a veth pair) between it and this
 * process. Tests of bad networks change the cable, or the packets on it. This needs root, but no RDMA device.
 */
import { spawnSync } from 'node:child_process';
import { ServerProcess } from '../runtime/process/processes.ts';

/** Throws an error with the command's output. */
export function run(command: string, ...args: string[]): void {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr.trim()}`);
}

export class Cable {
  /** The two ends of the cable, as network interfaces. */
  readonly near: string;
  readonly far: string;
  /** The address of the server. */
  readonly address: string;
  readonly #nearIp: string;
  readonly #farIp: string;
  #server: ServerProcess | undefined;

  /** `net` is the third number of the cable's addresses. Each cable must have a different number. */
  constructor(name: string, net: number, port: number) {
    this.near = `${name}0`;
    this.far = `${name}1`;
    this.#nearIp = `10.78.${net}.1`;
    this.#farIp = `10.78.${net}.2`;
    this.address = `${this.#farIp}:${port}`;
  }

  /**
   * Returns the reason why the shell commands `trial` cannot run here, in a namespace of their own with the
   * cable, or "" when they can.
   */
  whyNot(trial: string): string {
    if (process.getuid?.() !== 0) return 'it needs root, to make network namespaces';
    const commands = `modprobe -q -a veth sch_netem; ip link add ${this.near} type veth peer name ${this.far} && ${trial}`;
    const { status, stderr, error } = spawnSync('unshare', ['--net', 'sh', '-c', commands], {
      encoding: 'utf8',
    });
    return status === 0 ? '' : (error?.message ?? stderr).trim().split('\n').join('; ');
  }

  /** Starts the server, and sets up the cable. */
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

  /** The kernel removes the cable together with the server's namespace. */
  async end(): Promise<void> {
    await this.#server?.kill();
  }
}
