/**
 * Sessions hold memory that no garbage collection could free. Therefore connecting many sessions must not
 * cause a collection.
 */
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks';
import { type Channel, createChannel, createServer } from 'rdma-rpc';
import { expect, test } from 'vitest';
import { EchoDefinition } from './gen/echo.rdma.ts';

interface Collected extends PerformanceEntry {
  readonly detail: { readonly kind: number };
}
/**
 * Each session has about 2 MiB of receives on both sides. If V8 counted these bytes, it would collect a dozen
 * times.
 */
const sessions = 100;
const collectionsMax = 4;

test('receives of sessions start no garbage collections', async () => {
  const server = createServer({ sessionsPerPeerMax: sessions }).add(EchoDefinition, {
    echo: (request) => request,
    behave: (request) => request,
  });
  const address = await server.listen('127.0.0.1:0');
  const channels: Channel[] = [];
  const open = async (): Promise<void> => {
    const channel = createChannel(address, { fabric: 'shm' });
    channels.push(channel);
    await channel.ready();
  };
  await open();
  let collections = 0;
  const count = (entries: PerformanceEntry[]): void => {
    collections += entries.filter(
      (entry) => (entry as Collected).detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR,
    ).length;
  };
  const observer = new PerformanceObserver((list) => count(list.getEntries()));
  observer.observe({ entryTypes: ['gc'] });
  while (channels.length < sessions) await open();
  count(observer.takeRecords());
  observer.disconnect();
  await Promise.all(channels.map((channel) => channel.close()));
  await server.shutdown({ graceMs: 0 });
  expect(collections).toBeLessThanOrEqual(collectionsMax);
});
