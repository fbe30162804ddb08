/**
 * Tests `rdma-rpc perf` on RDMA devices. Each operation runs over the verbs fabric and over libibverbs alone,
 * and every byte is checked. The error for an operation that a device lacks is tested too.
 */
import { describe, expect, test } from 'vitest';
import type { PerfFabric, Plan, TestName } from '../../cli/perf/plan.ts';
import type { Row } from '../../cli/perf/row.ts';
import { run } from '../cli/command.ts';
import { clientDevice, serverDevice } from './pair.ts';

// The compiled program runs in this process on two native threads, because starting a command takes seconds
// in a guest.
const compiled = (file: string): string => new URL(`../../dist/cli/perf/${file}.js`, import.meta.url).href;
const { listen } = (await import(compiled('listen'))) as typeof import('../../cli/perf/listen.ts');
const { dial } = (await import(compiled('dial'))) as typeof import('../../cli/perf/dial.ts');

interface Device {
  readonly name: string;
  readonly transport: string;
}

const { out: report } = await run('devices', '--json');
const { devices } = JSON.parse(report) as { readonly devices: readonly Device[] };
const iwarp = devices.find(({ name }) => name === serverDevice)?.transport === 'iWARP';

const usual: Omit<Plan, 'test'> = {
  connection: 'RC',
  atomic: 'fetch_add',
  sizes: [8],
  iterations: 40,
  durationMs: 0,
  depth: 32,
  receiveDepth: 32,
  queuePairs: 1,
  inlineMax: 64,
  signalEvery: 0,
  postList: 1,
  bidirectional: false,
  validate: true,
  events: true,
  sharedReceives: false,
  manager: false,
  multicast: false,
  seed: 3,
};

async function row(name: TestName, fabric: PerfFabric, more: Partial<Plan> = {}): Promise<Row> {
  const host = '127.0.0.1';
  let listening: (port: number) => void;
  const port = new Promise<number>((resolve) => {
    listening = resolve;
  });
  const server = listen({
    host,
    port: 0,
    peers: 1,
    events: false,
    device: serverDevice,
    given: {},
    say: (text) => listening(Number(/:(\d+)$/.exec(text)?.[1])),
  });
  // The client's error also contains the failure of this side.
  server.catch(() => undefined);
  const plan = { ...usual, test: name, events: name !== 'write_lat', ...more };
  const options = { host, port: await port, device: clientDevice, fabric, timeoutMs: 20_000 };
  const client = await dial(plan, options);
  expect((await server).corrupt).toBe(0);
  return client.peers[0]!.rows[0]!;
}

const rc: readonly TestName[] = ['send_lat', 'send_bw', 'write_lat', 'write_bw', 'read_lat', 'read_bw'];
const whole = { messages: 40, corrupt: 0 };

test.each(rc)('%s works over the verbs fabric', async (name) => {
  expect(await row(name, 'verbs')).toMatchObject(whole);
});

test('large messages are sent on several queue pairs in both directions', async () => {
  const large = { sizes: [100_000], queuePairs: 2, bidirectional: true };
  expect(await row('send_bw', 'verbs', large)).toMatchObject({ messages: 160, received: 160, corrupt: 0 });
});

test.skipIf(iwarp).each<TestName>(['atomic_lat', 'atomic_bw'])('%s by the verbs fabric', async (name) => {
  for (const atomic of ['fetch_add', 'compare_swap'] as const)
    expect(await row(name, 'verbs', { atomic })).toMatchObject(whole);
});

test('queue pairs that rdma_cm connects', async () => {
  expect(await row('send_lat', 'verbs', { manager: true })).toMatchObject(whole);
});

test.skipIf(iwarp).each<PerfFabric>(['verbs', 'bare'])(
  '%s: queue pairs share their receives',
  async (fabric) => {
    const shared = { sharedReceives: true, queuePairs: 3, bidirectional: true };
    expect(await row('send_bw', fabric, shared)).toMatchObject({ messages: 240, received: 240, corrupt: 0 });
  },
);

test.each<Plan['connection']>(['UC', 'UD'])(
  'the verbs fabric runs %s, or says why not',
  async (connection) => {
    const found = row('send_lat', 'verbs', { connection });
    if (iwarp) await expect(found).rejects.toThrow(/has no U[CD] queue pairs: \w+/);
    else expect(await found).toMatchObject(whole);
  },
);

describe.skipIf(iwarp)('by libibverbs alone', () => {
  test.each(rc)('%s', async (name) => {
    expect(await row(name, 'bare')).toMatchObject(whole);
  });

  test.each<[TestName, Plan['atomic']]>([
    ['atomic_lat', 'fetch_add'],
    ['atomic_bw', 'fetch_add'],
    ['atomic_bw', 'compare_swap'],
  ])('runs %s with %s, on the memory that the test before it has left', async (name, atomic) => {
    expect(await row(name, 'bare', { atomic })).toMatchObject(whole);
  });

  test.each<[TestName, Plan['connection']]>([
    ['send_lat', 'UC'],
    ['write_lat', 'UC'],
    ['send_lat', 'UD'],
  ])('runs %s over %s', async (name, connection) => {
    expect(await row(name, 'bare', { connection })).toMatchObject(whole);
  });

  test('datagrams to a multicast group', async () => {
    expect(await row('send_lat', 'bare', { connection: 'UD', multicast: true })).toMatchObject(whole);
  });

  test('write_bw over UC', async () => {
    const plan = { connection: 'UC', validate: false } as const;
    expect(await row('write_bw', 'bare', plan)).toMatchObject({ messages: 40 });
  });

  test('refuses datagrams that are longer than a packet', async () => {
    const long = row('send_lat', 'bare', { connection: 'UD', sizes: [65_536] });
    await expect(long).rejects.toThrow(/carries messages of up to \d+ bytes over UD/);
  });
});

test.runIf(iwarp)('on iWARP, which has no bare queue pairs, the error names an alternative', async () => {
  await expect(row('send_lat', 'bare')).rejects.toThrow(
    /iWARP connects by rdma_cm only, which --fabric verbs uses/,
  );
});
