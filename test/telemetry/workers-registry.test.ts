/** Tests the sum of the metrics of several threads, tested with threads by hand. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { type ThreadMetrics, workersRegistry } from 'rdma-rpc/prometheus';
import { expect, test } from 'vitest';

/** Returns a thread that counts `calls`, a histogram `seconds` and a gauge `open`. */
function thread(threadId: number) {
  const registry = new Registry();
  const registers = [registry];
  return {
    threadId,
    registry,
    calls: new Counter({ name: 'calls', help: 'c', labelNames: ['method'], registers }),
    seconds: new Histogram({ name: 'seconds', help: 's', buckets: [1], registers }),
    open: new Gauge({ name: 'open', help: 'o', registers }),
  };
}
type Thread = ReturnType<typeof thread>;

function groupOf(...threads: Thread[]) {
  const silent = new Set<Thread>();
  return {
    threads,
    silent,
    get workers() {
      return threads;
    },
    metrics: () =>
      Promise.all(
        threads
          .filter((each) => !silent.has(each))
          .map(
            async ({ threadId, registry }): Promise<ThreadMetrics> =>
              // Copies the metrics in the way in which they are copied from one thread to another.
              structuredClone({ threadId, metrics: await registry.getMetricsAsJSON() }),
          ),
      ),
  };
}

async function lines(group: ReturnType<typeof groupOf>, own = new Registry()): Promise<string[]> {
  const text = await (await workersRegistry(group, own)).metrics();
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

test('adds up workers and the main thread, by labels', async () => {
  const [a, b, main] = [thread(1), thread(2), thread(0)];
  a.calls.inc({ method: 'Get' }, 2);
  b.calls.inc({ method: 'Get' }, 3);
  b.calls.inc({ method: 'Put' });
  main.calls.inc({ method: 'Put' }, 10);
  for (const each of [a, b]) each.open.set(4);
  b.seconds.observe(0.5);
  expect(await lines(groupOf(a, b), main.registry)).toEqual([
    'calls{method="Put"} 11',
    'calls{method="Get"} 5',
    'seconds_bucket{le="1"} 1',
    'seconds_bucket{le="+Inf"} 1',
    'seconds_sum 0.5',
    'seconds_count 1',
    'open 8',
  ]);
});

test('a worker that does not answer counts with its last answer', async () => {
  const a = thread(1);
  const group = groupOf(a);
  a.calls.inc({ method: 'Get' }, 2);
  expect(await lines(group)).toContain('calls{method="Get"} 2');
  a.calls.inc({ method: 'Get' });
  group.silent.add(a);
  expect(await lines(group)).toContain('calls{method="Get"} 2');
  group.silent.clear();
  expect(await lines(group)).toContain('calls{method="Get"} 3');
});

test('counters and histograms of a worker that has ended stay, but not its gauges, however many workers end', async () => {
  const group = groupOf();
  for (let id = 1; id <= 50; ++id) {
    const one = thread(id);
    one.calls.inc({ method: 'Get' });
    one.seconds.observe(2);
    one.open.set(1);
    group.threads.splice(0, 1, one);
    expect(await lines(group)).toEqual([
      `calls{method="Get"} ${id}`,
      'seconds_bucket{le="1"} 0',
      `seconds_bucket{le="+Inf"} ${id}`,
      `seconds_sum ${2 * id}`,
      `seconds_count ${id}`,
      'open 1',
    ]);
  }
});

test('scrapes at the same time count a worker that ends once', async () => {
  const a = thread(1);
  const group = groupOf(a);
  a.calls.inc({ method: 'Get' }, 2);
  await lines(group);
  group.threads.length = 0;
  const all = await Promise.all([lines(group), lines(group), lines(group)]);
  for (const each of [...all, await lines(group)])
    expect(each.filter((line) => line.startsWith('calls'))).toEqual(['calls{method="Get"} 2']);
});

test('a registry that cannot be read is an error of the scrape', async () => {
  const own = new Registry();
  const collect = () => {
    throw new Error('no');
  };
  new Gauge({ name: 'broken', help: 'b', registers: [own], collect });
  await expect(workersRegistry(groupOf(), own)).rejects.toThrow('no');
});
