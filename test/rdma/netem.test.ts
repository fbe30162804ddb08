/**
 * Tests the tcp fabric over a bad network. The server is in a network namespace of its own, behind a cable
 * (veth) that loses, delays, reorders and duplicates packets, or is cut. The test needs root, `ip`, `tc` and
 * a kernel with veth and netem, as in the guest of npm run test:rdma. The test needs no RDMA device.
 */
import { type Channel, type Client, leaseOf, RpcError } from 'rdma-rpc';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Cable, run } from './cable.ts';
import { endAll, pattern, reach, until } from './pair.ts';

const cable = new Cable('tcp', 0, 7000);
const cutMs = 5_000;
/** The time until a path that drops everything is detected, plus the time that a busy guest needs. */
const deadMaxMs = 110_000;
const callMs = 90_000;

/** Sets both ends of the cable; the arguments are those of `tc qdisc add ... netem`. */
function weather(...netem: string[]): void {
  run('tc', 'qdisc', 'replace', 'dev', cable.near, 'root', 'netem', ...netem);
  cable.atServer('tc', 'qdisc', 'replace', 'dev', cable.far, 'root', 'netem', ...netem);
}
const fine = (): void => weather('delay', '0ms');

const missing = cable.whyNot(`tc qdisc add dev ${cable.near} root netem delay 1ms`);
const why = missing === '' ? '' : `it needs network namespaces, veth and netem: ${missing}`;

beforeAll(async () => {
  if (why === '') await cable.start();
});
afterAll(() => cable.end());
afterEach(async (context) => {
  if (why === '') fine();
  await endAll(context);
});

function open(): { client: Client<typeof EchoDefinition>; channel: Channel } {
  return reach(cable.address, { fabric: 'tcp', timeoutMs: callMs });
}

/**
 * Makes small and large calls in both directions. Resolves to undefined for each correct answer, and to the
 * error for each failed call.
 */
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
    ['reorders packets', 'delay 5ms reorder 25% 50%'],
    ['duplicates packets', 'duplicate 5%'],
    ['loses, delays, reorders and duplicates packets', 'delay 10ms 5ms reorder 25% 50% loss 1% duplicate 1%'],
  ])('%s: every answer is right', async (_, netem) => {
    weather(...netem.split(' '));
    const { client } = open();
    expect(failures(await load(client))).toEqual([]);
  });

  test('is cut for five seconds: calls under way are answered, or fail once with an RpcError', async () => {
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

  test('is cut for ever: calls end at their deadlines, and the connection is closed', {
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
