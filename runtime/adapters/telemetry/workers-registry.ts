/**
 * The metrics of all threads of a worker group in one registry. This file is a part of `rdma-rpc/prometheus`.
 * This file is used on the main thread, for each scrape.
 */
import { AggregatorRegistry, type Registry, register } from 'prom-client';
import type { ThreadMetricsSource } from '../../core/thread-metrics.ts';

type Metrics = readonly object[];

/**
 * Returns whether a metric only grows, as counters and histograms do. A gauge of a thread that has ended has
 * no meaning.
 */
const grows = (metric: object): boolean =>
  ['counter', 'histogram'].includes((metric as { type?: string }).type ?? '');

/**
 * Returns a registry with the sums of the given metrics. The cast is safe, because prom-client only reads the
 * metrics, although its types do not say so.
 */
const summed = (all: readonly Metrics[]): Registry => AggregatorRegistry.aggregate(all as object[][]);

/** The metrics of the workers of one group. */
class GroupMetrics {
  readonly #group: ThreadMetricsSource;
  /** The last answer of each thread that has not ended. */
  readonly #last = new Map<number, Metrics>();
  /** The sums of the metrics of threads that have ended. */
  #ended: Metrics = [];
  #reading: Promise<readonly Metrics[]> | undefined;

  constructor(group: ThreadMetricsSource) {
    this.#group = group;
  }

  /**
   * Reads the metrics of all workers. Scrapes that arrive during a reading share its result, so that a thread
   * that ends is added to the sum only once.
   */
  read(): Promise<readonly Metrics[]> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #read(): Promise<readonly Metrics[]> {
    for (const { threadId, metrics } of await this.#group.metrics()) this.#last.set(threadId, metrics);
    const live = new Set(this.#group.workers.map(({ threadId }) => threadId));
    const gone = [...this.#last].filter(([threadId]) => !live.has(threadId));
    for (const [threadId] of gone) this.#last.delete(threadId);
    if (gone.length > 0) {
      const parts = gone.map(([, metrics]) => metrics.filter(grows));
      this.#ended = await summed([this.#ended, ...parts]).getMetricsAsJSON();
    }
    return [this.#ended, ...this.#last.values()];
  }
}

const groups = new WeakMap<ThreadMetricsSource, GroupMetrics>();

/**
 * Resolves to a registry with the sums of the metrics of all workers of `group` and of `registry`. `registry`
 * is the registry of the main thread (default: prom-client's global registry). Each worker passes its
 * registry to `listenInWorker(server, { registry })`. For a busy worker, its last answer is used. Counters
 * and histograms of a worker that has ended stay in the sum, so that sums never fall. Call this function for
 * each scrape. Rejects when `registry` cannot be read.
 */
export async function workersRegistry(
  group: ThreadMetricsSource,
  registry: Registry = register,
): Promise<Registry> {
  let metrics = groups.get(group);
  if (metrics === undefined) {
    metrics = new GroupMetrics(group);
    groups.set(group, metrics);
  }
  const [workers, own] = await Promise.all([metrics.read(), registry.getMetricsAsJSON()]);
  return summed([own, ...workers]);
}
