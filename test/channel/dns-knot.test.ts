/**
 * Tests `dns:` and `srv:` against a real DNS server (Debian's `knot`): changes, a name that disappears, a
 * zone that cannot be loaded, truncated answers, and a server that does not answer for a while.
 */
import { type Channel, createClient } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { targetOf } from '../../runtime/client/connections/target.ts';
import { replaceClock } from '../../runtime/clock.ts';
import { needs } from '../needs.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Bed, until } from './bed.ts';
import { Knot } from './knot.ts';

needs('knot');

let bed: Bed;
let knot: Knot;
let nowMs: number;
beforeEach(async () => {
  bed = new Bed();
  knot = await new Knot().start('host A 10.0.0.1', 'n2 A 10.0.0.2');
  nowMs = 1000;
  replaceClock(() => nowMs);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  bed.start(one, two, six);
});
afterEach(async () => {
  vi.useRealTimers();
  replaceClock(undefined);
  await bed.close();
  await knot.stop();
});

const [one, two, six] = ['10.0.0.1:5000', '10.0.0.2:5000', '[fd00::1]:5000'] as const;
const known = (channel: Channel): string =>
  channel.addresses
    .map(({ address, stale }) => `${address}${stale ? '?' : ''}`)
    .sort()
    .join(' ');
async function connected(target: string): Promise<Channel> {
  const channel = bed.channel(targetOf(target).resolver!, { resolveMinMs: 0 });
  await channel.ready();
  return channel;
}
const host = (): string => `dns://${knot.address}/host.test:5000`;
const service = (): string => `srv://${knot.address}/_rpc._tcp.test`;

/** Lets time pass for the channel until its addresses are the expected ones. */
async function becomes(channel: Channel, expected: string): Promise<void> {
  for (let i = 0; i < 300 && known(channel) !== expected; ++i) {
    nowMs += 1000;
    await vi.advanceTimersByTimeAsync(1000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await until(() => known(channel) === expected);
}

describe('dns:', () => {
  test('follows changes of both families', async () => {
    const channel = await connected(host());
    expect(known(channel)).toBe(one);
    await knot.set('host A 10.0.0.2', 'host AAAA fd00::1');
    await becomes(channel, [two, six].join(' '));
  });

  test('keeps the addresses of a name that has disappeared', async () => {
    const channel = await connected(host());
    await knot.set();
    await becomes(channel, `${one}?`);
    expect((await createClient(EchoDefinition, channel).fetch({})).text).toBe(one);
    await knot.set('host A 10.0.0.1', 'host A 10.0.0.2');
    await becomes(channel, `${one} ${two}`);
  });

  test('keeps the addresses while the server is silent', async () => {
    const channel = await connected(host());
    knot.freeze(true);
    await becomes(channel, `${one}?`);
    expect((await createClient(EchoDefinition, channel).fetch({})).text).toBe(one);
    knot.freeze(false);
    await becomes(channel, one);
  });

  test('reads an answer that is too long for UDP', async () => {
    const hosts = Array.from({ length: 100 }, (_, i) => `10.0.0.${i + 1}`);
    await knot.set(...hosts.map((each) => `host A ${each}`));
    const channel = await connected(host());
    expect(channel.addresses).toHaveLength(100);
  });

  test.each([
    ['a name that does not exist', 'none.test', /ENOTFOUND/],
    ['a zone that the server could not load', 'x.broken', /ESERVFAIL/],
    ['a zone that the server does not have', 'x.other', /EREFUSED/],
  ])('%s is the error of calls', async (_, name, reason) => {
    const { resolver } = targetOf(`dns://${knot.address}/${name}:5000`);
    const client = createClient(EchoDefinition, bed.channel(resolver!));
    await expect(client.echo({})).rejects.toThrow(reason);
  });
});

describe('srv:', () => {
  const listed = (channel: Channel): string[] =>
    channel.addresses.map(({ address, weight }) => `${address} ${weight}`).sort();

  test('has the ports and weights of the lowest priority, and follows changes', async () => {
    const hosts = ['host A 10.0.0.1', 'n2 A 10.0.0.2'];
    await knot.set(...hosts, '_rpc._tcp SRV 1 30 5000 host', '_rpc._tcp SRV 2 10 5000 n2');
    const channel = await connected(service());
    expect(listed(channel)).toEqual([`${one} 30`]);
    await knot.set(...hosts, '_rpc._tcp SRV 1 30 5000 host', '_rpc._tcp SRV 1 10 5000 n2');
    await becomes(channel, `${one} ${two}`);
    expect(listed(channel)).toEqual([`${one} 30`, `${two} 10`]);
    await knot.set(...hosts);
    await becomes(channel, `${one}? ${two}?`);
  });
});
