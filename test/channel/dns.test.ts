/**
 * Tests channels to names: A, AAAA and SRV records of a DNS server that changes, fails, and becomes silent.
 */
import { type Channel, type ChannelOptions, createClient } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { targetOf } from '../../runtime/client/connections/target.ts';
import { replaceClock } from '../../runtime/clock.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Bed, until } from './bed.ts';
import { type Answer, DnsServer, rcodes } from './dns-server.ts';

let bed: Bed;
let dns: DnsServer;
let nowMs: number;
beforeEach(async () => {
  bed = new Bed();
  dns = await new DnsServer().start();
  nowMs = 1000;
  replaceClock(() => nowMs);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(async () => {
  vi.useRealTimers();
  replaceClock(undefined);
  await bed.close();
  await dns.stop();
});

/** Lets time pass for the channel. The time limits of a DNS query are set by c-ares, on the real clock. */
async function pass(ms: number): Promise<void> {
  nowMs += ms;
  await vi.advanceTimersByTimeAsync(ms);
}

const [one, two, six] = ['10.0.0.1:5000', '10.0.0.2:5000', '[fd00::1]:5000'] as const;
const known = (channel: Channel): string =>
  channel.addresses
    .map(({ address, stale }) => `${address}${stale ? '?' : ''}`)
    .sort()
    .join(' ');
const channelTo = (target: string, options: ChannelOptions = {}): Channel =>
  bed.channel(targetOf(target).resolver!, { resolveMinMs: 0, ...options });
const name = (): string => `dns://${dns.address}/host.test:5000`;
async function connected(target = name()): Promise<Channel> {
  const channel = channelTo(target);
  await channel.ready();
  return channel;
}

describe('dns:', () => {
  test('has the addresses of both families', async () => {
    bed.start(one, two, six);
    dns.set('A host.test', '10.0.0.1', '10.0.0.2');
    dns.set('AAAA host.test', 'fd00:0:0:0:0:0:0:1');
    expect(known(await connected())).toBe([one, two, six].join(' '));
  });

  test('asks again over TCP when an answer was truncated', async () => {
    bed.start(one);
    dns.answers.set('A host.test', { records: ['10.0.0.1'], truncated: true });
    await connected();
    expect(dns.asked).toContain('tcp A host.test');
  });

  test.each<[number, number]>([
    [60, 60_000],
    [0, 5_000],
    [86_400, 300_000],
  ])('with a TTL of %i s asks again after %i ms, and takes the change over', async (ttl, ms) => {
    bed.start(one, two);
    dns.answers.set('A host.test', { records: ['10.0.0.1'], ttl });
    const channel = await connected();
    dns.answers.set('A host.test', { records: ['10.0.0.2'], ttl });
    const { length } = dns.asked;
    await pass(ms - 1);
    expect(dns.asked).toHaveLength(length);
    await pass(1);
    await until(() => known(channel) === two);
    const { text } = await createClient(EchoDefinition, channel).fetch({}, { waitForReady: true });
    expect(text).toBe(two);
  });

  test('asks again at once when a connection was lost', async () => {
    bed.start(one, two);
    dns.set('A host.test', '10.0.0.1');
    const channel = await connected();
    dns.set('A host.test', '10.0.0.2');
    await bed.stop(one);
    await until(() => known(channel) === two);
  });

  test.each<[string, Answer | undefined]>([
    ['does not exist any more', undefined],
    ['has no address any more', { records: [] }],
    ['has a server that fails', { rcode: rcodes.servfail }],
    ['has a server that refuses', { rcode: rcodes.refused }],
    ['has a server that is silent', { silent: true }],
  ])('a name that %s keeps its addresses, as stale ones, until DNS is back', async (_, answer) => {
    bed.start(one);
    dns.set('A host.test', '10.0.0.1');
    const channel = await connected();
    const asked = dns.asked.length;
    for (const question of ['A host.test', 'AAAA host.test']) {
      if (answer === undefined) dns.answers.delete(question);
      else dns.answers.set(question, answer);
    }
    await pass(60_000);
    await until(() => dns.asked.length >= asked + 2);
    // A query to a silent server is cancelled by the channel's time limit of an attempt.
    if (answer?.silent === true) await pass(5_000);
    await until(() => known(channel) === `${one}?`);
    expect(channel.state).toBe('ready');
    expect((await createClient(EchoDefinition, channel).fetch({})).text).toBe(one);
    dns.set('A host.test', '10.0.0.1', '10.0.0.2');
    dns.answers.delete('AAAA host.test');
    for (let i = 0; i < 100 && known(channel) !== `${one} ${two}`; ++i) {
      await pass(100);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await until(() => known(channel) === `${one} ${two}`);
  });

  test('when the query for one family fails, the addresses of the other family are used', async () => {
    bed.start(one);
    dns.set('A host.test', '10.0.0.1');
    dns.answers.set('AAAA host.test', { rcode: rcodes.servfail });
    expect(known(await connected())).toBe(one);
  });

  test.each<[string, Answer | undefined, RegExp]>([
    ['NXDOMAIN', undefined, /cannot resolve bed: .*ENOTFOUND/],
    ['SERVFAIL', { rcode: rcodes.servfail }, /cannot resolve bed: .*ESERVFAIL/],
  ])('%s at the beginning is the error of calls', async (_, answer, text) => {
    if (answer !== undefined) dns.answers.set('A host.test', answer);
    await expect(createClient(EchoDefinition, channelTo(name())).echo({})).rejects.toThrow(text);
  });

  test('a closed channel sends no more queries', async () => {
    bed.start(one);
    dns.set('A host.test', '10.0.0.1');
    const channel = await connected();
    await channel.close();
    const { length } = dns.asked;
    await pass(600_000);
    expect(dns.asked).toHaveLength(length);
  });
});

describe('srv:', () => {
  const service = (): string => `srv://${dns.address}/_rpc._tcp.host.test`;
  const many = Array.from({ length: 11 }, (_, i) => `10.0.1.${i + 1}`);
  const listed = (channel: Channel): string[] =>
    channel.addresses.map(({ address, weight }) => `${address} ${weight}`).sort();
  beforeEach(() => {
    bed.start(one, two, '10.0.0.3:5001');
    for (const i of [1, 2, 3]) dns.set(`A n${i}.test`, `10.0.0.${i}`);
  });

  test.each<[string, readonly string[], readonly string[]]>([
    ['ports and weights', ['1 30 5000 n1.test', '1 10 5001 n3.test'], [`${one} 30`, '10.0.0.3:5001 10']],
    ['the lowest priority alone', ['2 9 5000 n2.test', '1 7 5000 n1.test'], [`${one} 7`]],
    ['no weights', ['1 0 5000 n1.test', '1 0 5000 n2.test'], [`${one} 1`, `${two} 1`]],
    ['a weight of 0 beside others', ['1 0 5000 n1.test', '1 5 5000 n2.test'], [`${one} 0.01`, `${two} 5`]],
    ['a target without an address', ['1 1 5000 gone.test', '1 1 5000 n2.test'], [`${two} 1`]],
    ['no address at the lowest priority', ['1 1 5000 gone.test', '2 1 5000 n2.test'], [`${two} 1`]],
    ['a target with two addresses', ['1 8 5000 both.test'], [`${one} 4`, `${two} 4`]],
    [
      'a weight of 0 for many addresses',
      ['1 0 5000 many.test', '1 5 5000 n2.test'],
      [...many.map((host) => `${host}:5000 0.001`), `${two} 5`],
    ],
  ])('%s', async (_, records, expected) => {
    dns.set('A many.test', ...many);
    dns.set('A both.test', '10.0.0.1', '10.0.0.2');
    dns.set('SRV _rpc._tcp.host.test', ...records);
    const channel = await connected(service());
    expect(listed(channel)).toEqual([...expected].sort());
  });

  test('the target "." means that the service is not available', async () => {
    dns.set('SRV _rpc._tcp.host.test', '0 0 0 .');
    await expect(createClient(EchoDefinition, channelTo(service())).echo({})).rejects.toThrow(
      /no SRV record with a server/,
    );
  });

  test('asks again after the TTL of its hosts, and keeps the last list when DNS fails', async () => {
    dns.set('SRV _rpc._tcp.host.test', '1 1 5000 n1.test');
    const channel = await connected(service());
    dns.set('SRV _rpc._tcp.host.test', '1 1 5000 n2.test');
    await pass(60_000);
    await until(() => known(channel) === two);
    dns.answers.set('SRV _rpc._tcp.host.test', { rcode: rcodes.servfail });
    await pass(60_000);
    await until(() => known(channel) === `${two}?`);
  });

  test('certificates have the name of the service', () => {
    expect(targetOf('srv:///_rpc._tcp.host.test').host).toBe('host.test');
  });
});
