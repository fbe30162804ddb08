/**
 * Tests service configuration: which fields are read, which are refused, and their effect on calls and
 * policies.
 */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type Channel,
  createClient,
  type Resolver,
  RpcError,
  type ServerAddress,
  type ServiceConfig,
  Status,
} from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ConfigFile } from '../../runtime/client/config/config-file.ts';
import { checkedServiceConfig, settingsOf } from '../../runtime/client/config/service-config.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Bed, caught, until } from './bed.ts';

const all = [{}];
const retryPolicy = {
  maxAttempts: 9,
  initialBackoff: '0.1s',
  maxBackoff: '1s',
  backoffMultiplier: 2,
  retryableStatusCodes: ['UNAVAILABLE', 8, 'aborted'],
};

describe('reading the configuration', () => {
  test('only the most specific entry of a method is used', () => {
    const config = checkedServiceConfig({
      methodConfig: [
        { name: [{}], timeout: '9s', waitForReady: true },
        { name: [{ service: 'a.B' }, { service: 'a.C', method: null }], timeout: '0.25s' },
        { name: [{ service: 'a.B', method: 'Get' }], maxRequestMessageBytes: '100' },
      ],
    });
    expect(settingsOf(config, 'a.B/Get')).toEqual({ requestMaxBytes: 100 });
    expect(settingsOf(config, 'a.B/Put')).toEqual({ timeoutMs: 250 });
    expect(settingsOf(config, 'a.C/Get')).toEqual({ timeoutMs: 250 });
    expect(settingsOf(config, 'a.D/Get')).toEqual({ timeoutMs: 9000, waitForReady: true });
  });

  test('retries and hedging have limits', () => {
    const read = (entry: object) =>
      settingsOf(checkedServiceConfig({ methodConfig: [{ name: all, ...entry }] }), 'a/b');
    expect(read({ retryPolicy })).toEqual({
      retry: {
        attemptsMax: 5,
        backoffMs: 100,
        backoffMaxMs: 1000,
        codes: [Status.UNAVAILABLE, Status.RESOURCE_EXHAUSTED, Status.ABORTED],
      },
    });
    expect(read({ hedgingPolicy: { maxAttempts: 3, hedgingDelay: '0.05s' } })).toEqual({
      hedging: { attemptsMax: 3, delayMs: 50, codes: [] },
    });
  });

  test.each<[object, object]>([
    [{ pick_first: {} }, { loadBalancing: 'pick-first' }],
    [{ round_robin: {} }, { loadBalancing: 'round-robin' }],
    [{ least_request_experimental: { choiceCount: 2 } }, { loadBalancing: 'least-request' }],
    [
      { ring_hash_experimental: { requestHashHeader: 'user' } },
      { loadBalancing: 'consistent-hash', consistentHash: { metadataKey: 'user', maxLoad: 1.25 } },
    ],
    [
      { 'consistent-hash': { metadataKey: 'user', maxLoad: 2 } },
      { loadBalancing: 'consistent-hash', consistentHash: { metadataKey: 'user', maxLoad: 2 } },
    ],
    [
      { weighted_round_robin: { blackoutPeriod: '1s', weightUpdatePeriod: '0.001s' } },
      {
        loadBalancing: 'weighted-round-robin',
        loadReports: { blackoutMs: 1000, expirationMs: 180_000, updateMs: 100, errorPenalty: 1 },
      },
    ],
  ])('policy %j', (policy, expected) => {
    const list = [{ grpclb: {} }, policy, { round_robin: {} }];
    expect(checkedServiceConfig({ loadBalancingConfig: list, unknown: 1 }).balancing).toEqual(expected);
  });

  test.each<[unknown, RegExp]>([
    ['text', /^serviceConfig: not an object/],
    [{ methodConfig: {} }, /serviceConfig.methodConfig: {} is not a list/],
    [{ methodConfig: [{ name: all, timeout: '5' }] }, /methodConfig\[0\].timeout: "5" is not a duration/],
    [{ methodConfig: [{ name: all, timeout: '-1s' }] }, /timeout: "-1s" is not a duration/],
    [{ methodConfig: [{ name: all, waitForReady: 1 }] }, /waitForReady: 1 is not true or false/],
    [{ methodConfig: [{ name: all, maxRequestMessageBytes: -1 }] }, /maxRequestMessageBytes: -1 is not/],
    [{ methodConfig: [{ name: all }, { name: all }] }, /unique: '\/' has an entry already/],
    [{ methodConfig: [{ name: [{ method: 'Get' }] }] }, /given beside method 'Get'/],
    [
      { methodConfig: [{ name: all, retryPolicy: { ...retryPolicy, maxAttempts: 1 } }] },
      /maxAttempts: 1 is not/,
    ],
    [
      { methodConfig: [{ name: all, retryPolicy: { ...retryPolicy, retryableStatusCodes: ['OK'] } }] },
      /retryableStatusCodes: "OK" is not a status code/,
    ],
    [
      { methodConfig: [{ name: all, retryPolicy: { ...retryPolicy, initialBackoff: null } }] },
      /initialBackoff: null is not given/,
    ],
    [
      { methodConfig: [{ name: all, retryPolicy, hedgingPolicy: { maxAttempts: 2 } }] },
      /hedgingPolicy: .* is not possible beside retryPolicy/,
    ],
    [{ loadBalancingConfig: [{ grpclb: {} }] }, /with a known policy: pick_first, round_robin/],
    [{ loadBalancingConfig: [{ a: {}, b: {} }] }, /a list of objects with one policy each/],
    [{ loadBalancingConfig: [{ 'consistent-hash': {} }] }, /metadataKey: nothing is not the name/],
    [{ retryThrottling: { maxTokens: 0, tokenRatio: 1 } }, /maxTokens: 0 is not a number from 1/],
  ])('%j is refused', (config, text) => {
    expect(() => checkedServiceConfig(config)).toThrow(text);
  });
});

describe('a channel', () => {
  let bed: Bed;
  let folder: string;
  const warnings: string[] = [];
  const log = (line: unknown): void => void warnings.push(String(line));
  beforeEach(() => {
    bed = new Bed();
    folder = mkdtempSync(join(tmpdir(), 'config-'));
    warnings.length = 0;
  });
  afterEach(async () => {
    await bed.close();
    rmSync(folder, { recursive: true });
    vi.restoreAllMocks();
  });

  const hang = (): Promise<never> => new Promise(() => undefined);
  const open = (serviceConfig: ServiceConfig, addresses = ['a:1']): Channel =>
    bed.channel(addresses, { serviceConfig, log });

  test('takes the shorter time limit of configuration and application', async () => {
    bed.start('a:1');
    bed.unwell.set('a:1', hang);
    const timeout = { methodConfig: [{ name: all, timeout: '0.05s' }] };
    const client = createClient(EchoDefinition, open(timeout), { fetch: { timeoutMs: 100_000 } });
    const codes = [
      (await caught(client.fetch({}))).code,
      (await caught(client.fetch({}, { timeoutMs: 100_000 }))).code,
    ];
    expect(codes).toEqual([Status.DEADLINE_EXCEEDED, Status.DEADLINE_EXCEEDED]);
    const long = createClient(EchoDefinition, open({ methodConfig: [{ name: all, timeout: '100s' }] }));
    expect((await caught(long.fetch({}, { timeoutMs: 20 }))).code).toBe(Status.DEADLINE_EXCEEDED);
  });

  test('waits for a connection, unless the client says otherwise', async () => {
    const channel = open({ methodConfig: [{ name: [{ service: 'test.echo.Echo' }], waitForReady: true }] });
    const answer = createClient(EchoDefinition, channel).fetch({});
    const impatient = createClient(EchoDefinition, channel, { '*': { waitForReady: false } }).fetch({});
    expect((await caught(impatient)).code).toBe(Status.UNAVAILABLE);
    bed.start('a:1');
    expect((await answer).text).toBe('a:1');
  });

  test('limits the size of requests and responses of a method', async () => {
    bed.start('a:1');
    const channel = open({
      methodConfig: [{ name: all, maxRequestMessageBytes: 20, maxResponseMessageBytes: 10 }],
    });
    const client = createClient(EchoDefinition, channel);
    expect((await client.echo({ text: '12345678' })).text).toBe('12345678');
    expect(await caught(client.echo({ text: 'x'.repeat(30) }))).toMatchObject({
      code: Status.RESOURCE_EXHAUSTED,
      processed: 'no',
      rawMessage: expect.stringMatching(/32 bytes, but maxRequestMessageBytes .* is 20/),
    });
    expect(await caught(client.echo({ text: 'x'.repeat(15) }))).toMatchObject({
      code: Status.RESOURCE_EXHAUSTED,
      processed: 'yes',
    });
  });

  test('retries as the policy requires, but not what the application has forbidden', async () => {
    bed.start('a:1');
    const retry = { ...retryPolicy, maxAttempts: 3, initialBackoff: '0.001s', maxBackoff: '0.001s' };
    const channel = open({ methodConfig: [{ name: all, retryPolicy: retry }] });
    bed.unwell.set('a:1', () => Promise.reject(new RpcError(Status.UNAVAILABLE, 'unwell')));
    const runs = async (defaults: object): Promise<number> => {
      const before = bed.at('a:1').log.started;
      await caught(createClient(EchoDefinition, channel, defaults).fetch({}));
      return bed.at('a:1').log.started - before;
    };
    expect(await runs({ fetch: { idempotent: true } })).toBe(3);
    expect(await runs({ fetch: { idempotent: true, retry: false } })).toBe(1);
    // The handler of this call has run and must not run twice.
    expect(await runs({})).toBe(1);
  });

  test('changes its policy, and keeps its connections', async () => {
    bed.start('a:1', 'b:1');
    let push: (servers: ServerAddress[]) => void = () => undefined;
    const servers = (config: object): ServerAddress[] =>
      ['a:1', 'b:1'].map((address) => ({ address, attributes: { serviceConfig: JSON.stringify(config) } }));
    const resolver: Resolver = {
      resolve: () => Promise.resolve(servers({})),
      watch: (onChange) => {
        push = onChange;
        return () => undefined;
      },
    };
    const channel = bed.channel(resolver, { log });
    await channel.ready();
    await until(() => channel.addresses.every(({ state }) => state === 'ready'));
    const client = createClient(EchoDefinition, channel);
    const answered = async (): Promise<string> => {
      const who = new Set<string>();
      for (let i = 0; i < 20; ++i) who.add((await client.fetch({}, { metadata: { user: '1' } })).text[0]!);
      return [...who].sort().join('');
    };
    expect(await answered()).toBe('ab');
    push(servers({ loadBalancingConfig: [{ 'consistent-hash': { metadataKey: 'user', maxLoad: 99 } }] }));
    const home = await answered();
    expect(home).toHaveLength(1);
    push(servers({ loadBalancingConfig: [{ nonsense: {} }] }));
    expect(await answered()).toBe(home);
    expect(warnings.filter((line) => /with a known policy/.test(line))).toHaveLength(1);
    push(servers({ loadBalancingConfig: [{ round_robin: {} }] }));
    expect(await answered()).toBe('ab');
    expect(bed.dialled).toHaveLength(2);
  });

  test('sets the retry budget, which keeps its share of tokens', () => {
    const channel = bed.channel(['a:1'], {
      serviceConfig: { retryThrottling: { maxTokens: 4, tokenRatio: 0.5 } },
    });
    const { budget } = channel.repeats;
    budget.failed();
    expect(budget.allows).toBe(true);
    budget.failed();
    expect(budget.allows).toBe(false);
    budget.succeeded();
    expect(budget.allows).toBe(true);
  });

  test('prefers the policy that the application gives', async () => {
    bed.start('a:1', 'b:1');
    const serviceConfig = { loadBalancingConfig: [{ round_robin: {} }] };
    const channel = bed.channel(['a:1', 'b:1'], { serviceConfig, loadBalancing: 'pick-first' });
    await channel.ready();
    expect(bed.dialled).toEqual(['a:1']);
  });

  test('reports a wrong configuration as an error of createChannel', () => {
    expect(() => open({ methodConfig: [{ name: all, timeout: '5' }] } as unknown as ServiceConfig)).toThrow(
      /timeout/,
    );
    const path = join(folder, 'config.json');
    expect(() => bed.channel(['a:1'], { serviceConfig: path })).toThrow(/ENOENT/);
    writeFileSync(path, '{');
    expect(() => bed.channel(['a:1'], { serviceConfig: path })).toThrow(SyntaxError);
  });

  test('follows a file that changes, is replaced, becomes invalid and valid again', () => {
    const path = join(folder, 'config.json');
    writeFileSync(path, 'one');
    const texts: string[] = [];
    const faults: unknown[] = [];
    const file = new ConfigFile(
      path,
      (text) => texts.push(text),
      (fault) => faults.push(fault),
    );
    writeFileSync(`${path}.new`, 'two');
    renameSync(`${path}.new`, path);
    file.reread();
    rmSync(path);
    file.reread();
    writeFileSync(path, 'three');
    file.reread();
    file.close();
    expect(texts).toEqual(['one', 'two', 'three']);
    expect(faults).toHaveLength(1);
  });
});
