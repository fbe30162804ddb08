/**
 * The tcp fabric over a bad network: a server in a network namespace of its own, behind a cable (veth) that loses, delays, reorders and duplicates packets, or
 * is cut. Needs root, `ip`, `tc` and a kernel with veth and netem, as the guest of npm run test:rdma has them; no RDMA device.
 */
import { spawnSync } from 'node:child_process';
import { type Channel, type Client, leaseOf, RpcError } from 'rdma-rpc';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { ServerProcess } from '../runtime/process/processes.ts';
import { endAll, pattern, reach, until } from './pair.ts';

const cable = { near: 'tcp0', far: 'tcp1' };
const subnet = { near: '10.78.0.1', far: '10.78.0.2' };
const port = 7000;
const cutMs = 5_000;
/** Of the fabric (60 s, as of keepalive), and what a busy guest takes. */
const deadMaxMs = 110_000;
const callMs = 90_000;

let server: ServerProcess | undefined;

/** Throws with what the command said. */
function run(command: string, ...args: string[]): void {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr.trim()}`);
}
function far(...command: string[]): void {
  run('nsenter', '-t', String(server!.child.pid), '-n', ...command);
}
/** Both ends of the cable, in the words of `tc qdisc add ... netem`. */
function weather(...netem: string[]): void {
  run('tc', 'qdisc', 'replace', 'dev', cable.near, 'root', 'netem', ...netem);
  far('tc', 'qdisc', 'replace', 'dev', cable.far, 'root', 'netem', ...netem);
}
const fine = (): void => weather('delay', '0ms');

/** Why it cannot be run here; empty when it can. Lays a cable and takes it away. */
function whyNot(): string {
  if (process.getuid?.() !== 0) return 'it needs root, to make network namespaces';
  const trial = `modprobe -q -a veth sch_netem; ip link add ${cable.near} type veth peer name ${cable.far} &&
    tc qdisc add dev ${cable.near} root netem delay 1ms`;
  const { status, stderr, error } = spawnSync('unshare', ['--net', 'sh', '-c', trial], { encoding: 'utf8' });
  return status === 0
    ? ''
    : `it needs network namespaces, veth and netem: ${(error?.message ?? stderr).trim().split('\n').join('; ')}`;
}
const why = whyNot();

beforeAll(async () => {
  if (why !== '') return;
  const env = { ...process.env, RDMA_RPC_FABRIC: 'tcp' };
  const execArgv = ['--net', '--', process.execPath];
  server = await ServerProcess.start(`0.0.0.0:${port}`, {}, { env, execPath: 'unshare', execArgv });
  const pid = String(server.child.pid);
  run('ip', 'link', 'add', cable.near, 'type', 'veth', 'peer', 'name', cable.far, 'netns', pid);
  run('ip', 'address', 'add', `${subnet.near}/24`, 'dev', cable.near);
  run('ip', 'link', 'set', cable.near, 'up');
  far('ip', 'address', 'add', `${subnet.far}/24`, 'dev', cable.far);
  far('ip', 'link', 'set', cable.far, 'up');
});
// The cable goes with the server's namespace.
afterAll(() => server?.kill());
afterEach(async (context) => {
  if (server !== undefined) fine();
  await endAll(context);
});

function open(): { client: Client<typeof EchoDefinition>; channel: Channel } {
  return reach(`${subnet.far}:${port}`, { fabric: 'tcp', timeoutMs: callMs });
}

/** Small and large calls in both directions. How each ended: undefined when its answer is right. */
function load(client: Client<typeof EchoDefinition>, timeoutMs = callMs): Promise<unknown[]> {
  const sizes = [...Array.from({ length: 40 }, (_, index) => index * 10), 5_000, 200_000, 1_000_000];
  return Promise.all(
    sizes.map(async (bytes, number) => {
      const payload = pattern(bytes, number);
      try {
        const answer = await client.echo({ number, payload }, { timeoutMs });
        const right = answer.number === number && Buffer.compare(answer.payload, payload) === 0;
        leaseOf(answer)?.release();
        return right ? undefined : new Error(`the answer to ${number} (${bytes} bytes) is wrong`);
      } catch (error) {
        return error;
      }
    }),
  );
}
const failures = (outcomes: readonly unknown[]): unknown[] => outcomes.filter((each) => each !== undefined);

describe('tcp over a network that', () => {
  beforeEach(({ skip }) => skip(why !== '', why));

  test.each([
    ['loses one packet in a hundred', 'loss 1%'],
    ['takes 10 ms each way', 'delay 10ms'],
    ['lets packets overtake others', 'delay 5ms reorder 25% 50%'],
    ['brings packets twice', 'duplicate 5%'],
    ['does all of that', 'delay 10ms 5ms reorder 25% 50% loss 1% duplicate 1%'],
  ])('%s: every answer is right', async (_, netem) => {
    weather(...netem.split(' '));
    const { client } = open();
    expect(failures(await load(client))).toEqual([]);
  });

  test('is cut for five seconds: what was under way is answered, or fails once and by name', async () => {
    const { client } = open();
    expect(failures(await load(client))).toEqual([]);
    weather('loss', '100%');
    const outcomes = load(client);
    const begin = performance.now();
    await until(
      () => performance.now() - begin,
      (ms) => ms > cutMs,
    );
    fine();
    for (const error of failures(await outcomes)) expect(error).toBeInstanceOf(RpcError);
    expect(failures(await load(client))).toEqual([]);
  });

  test('is cut for ever: calls end at their deadlines, and the peer is taken for dead', {
    timeout: 240_000,
  }, async () => {
    const { client, channel } = open();
    expect(failures(await load(client))).toEqual([]);
    weather('loss', '100%');
    const begin = performance.now();
    const outcomes = failures(await load(client, 3_000));
    expect(outcomes.every((error) => error instanceof RpcError)).toBe(true);
    expect(outcomes.length).toBe(43);
    expect(performance.now() - begin).toBeLessThan(30_000);
    while (channel.state === 'ready' && performance.now() - begin < deadMaxMs)
      await new Promise((resolve) => setImmediate(resolve));
    expect(channel.state).not.toBe('ready');
  });
});
