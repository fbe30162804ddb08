/**
 * Tests outlier detection and health checks by a service configuration: the tests check which fields are
 * read, which are reported, and their effect.
 */
import { type ChannelOptions, createClient, RpcError, type ServiceConfig, Status } from 'rdma-rpc';
import { addHealth, healthCheck } from 'rdma-rpc/health';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { checkedServiceConfig } from '../../runtime/client/config/service-config.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Bed, until } from './bed.ts';

const detecting = (fields: object, childPolicy: unknown = [{ round_robin: {} }]): ServiceConfig => ({
  loadBalancingConfig: [{ outlier_detection_experimental: { ...fields, childPolicy } }],
});

describe('outlier detection is read', () => {
  const byDefault = { intervalMs: 10_000, ejectionMs: 30_000, answersMin: 100 };
  test.each<[object, object, RegExp[]]>([
    [{}, { ...byDefault, intervalMs: 0 }, []],
    [{ successRateEjection: {} }, byDefault, []],
    [
      { interval: '5s', baseEjectionTime: '1.5s', successRateEjection: { requestVolume: 20 } },
      { intervalMs: 5000, ejectionMs: 1500, answersMin: 20 },
      [],
    ],
    [
      {
        maxEjectionTime: '300s',
        maxEjectionPercent: 10,
        successRateEjection: { stdevFactor: 1900, enforcementPercentage: 100, minimumHosts: 5 },
      },
      byDefault,
      [],
    ],
    [
      {
        maxEjectionTime: '60s',
        maxEjectionPercent: 50,
        successRateEjection: { stdevFactor: 3000 },
        failurePercentageEjection: { threshold: 85 },
      },
      byDefault,
      [
        /outlier_detection_experimental.maxEjectionPercent: 50 has no effect, it is always 10/,
        /maxEjectionTime has no effect, it is always 300s/,
        /failurePercentageEjection has no effect; use successRateEjection/,
        /successRateEjection.stdevFactor: 3000 has no effect, it is always 1900/,
      ],
    ],
  ])('%j', (fields, expected, reports) => {
    const config = checkedServiceConfig(detecting(fields));
    expect(config.outliers).toEqual(expected);
    expect(config.balancing).toEqual({ loadBalancing: 'round-robin' });
    expect(config.reports).toHaveLength(reports.length);
    for (const [i, text] of reports.entries()) expect(config.reports[i]).toMatch(text);
  });

  test.each<[object, RegExp]>([
    [detecting({ interval: '5' }), /outlier_detection_experimental.interval: "5" is not a duration/],
    [detecting({ maxEjectionPercent: -1 }), /maxEjectionPercent: -1 is not a number from 0/],
    [detecting({}, [{ grpclb: {} }]), /childPolicy: .* is not with a known policy: pick_first/],
    [detecting({ successRateEjection: { requestVolume: 'x' } }), /requestVolume: "x" is not a number/],
    [{ healthCheckConfig: { serviceName: 5 } }, /healthCheckConfig.serviceName: 5 is not a string/],
    [{ healthCheckConfig: 'x' }, /healthCheckConfig: not an object/],
  ])('%j is refused', (config, text) => {
    expect(() => checkedServiceConfig(config)).toThrow(text);
  });

  test.each<[object, string | undefined]>([
    [{}, undefined],
    [{ healthCheckConfig: {} }, undefined],
    [{ healthCheckConfig: { serviceName: '' } }, ''],
    [{ healthCheckConfig: { serviceName: 'a.B' } }, 'a.B'],
  ])('health of %j', (config, service) => expect(checkedServiceConfig(config).health).toBe(service));
});

describe('a channel', () => {
  let bed: Bed;
  const lines: string[] = [];
  beforeEach(() => {
    bed = new Bed();
    lines.length = 0;
    bed.start('a:1', 'b:1');
  });
  afterEach(() => bed.close());

  async function open(options: ChannelOptions) {
    const log = (line: string): void => void lines.push(line);
    const channel = bed.channel(['a:1', 'b:1'], { loadBalancing: 'round-robin', log, ...options });
    await channel.ready();
    await until(() => channel.addresses.every(({ state }) => state === 'ready' || state === 'unhealthy'));
    const client = createClient(EchoDefinition, channel);
    const states = (): string => channel.addresses.map(({ state }) => state).join(' ');
    return { client, states };
  }
  const warned = (): string[] => lines.filter((line) => line.startsWith('service configuration'));

  test('ejects for the configured time', async () => {
    const { client, states } = await open({ serviceConfig: detecting({ baseEjectionTime: '0.05s' }) });
    bed.unwell.set('a:1', () => Promise.reject(new RpcError(Status.INTERNAL, 'unwell')));
    for (let bad = 0; bad < 5; ) await client.fetch({}).catch(() => ++bad);
    expect(states()).toBe('ejected ready');
    bed.unwell.clear();
    await until(() => states() === 'ready ready');
    expect(warned()).toEqual([]);
  });

  test('uses the health of the service that the configuration names', async () => {
    const health = addHealth(bed.at('a:1').server);
    addHealth(bed.at('b:1').server).setStatus('a.B', 'SERVING');
    health.setStatus('a.B', 'NOT_SERVING');
    const serviceConfig: ServiceConfig = { healthCheckConfig: { serviceName: 'a.B' } };
    const { states } = await open({ serviceConfig, healthCheck: healthCheck() });
    await until(() => states() === 'unhealthy ready');
    health.setStatus('a.B', 'SERVING');
    await until(() => states() === 'ready ready');
    expect(warned()).toEqual([]);
  });

  test('uses the service that the application names, whatever the configuration has', async () => {
    const health = addHealth(bed.at('a:1').server);
    health.setStatus('a.B', 'NOT_SERVING');
    health.setStatus('a.C', 'SERVING');
    const serviceConfig: ServiceConfig = { healthCheckConfig: { serviceName: 'a.B' } };
    const { client, states } = await open({ serviceConfig, healthCheck: healthCheck('a.C') });
    expect(states()).toBe('ready ready');
    const who = new Set<string>();
    for (let i = 0; i < 50; ++i) who.add((await client.fetch({})).text!);
    expect([...who].sort()).toEqual(['a:1', 'b:1']);
  });

  test('without a health check warns once, and continues to work', async () => {
    const { client } = await open({ serviceConfig: { healthCheckConfig: { serviceName: 'a.B' } } });
    await client.fetch({});
    expect(warned()).toEqual([
      expect.stringMatching(/healthCheckConfig has no effect on this channel; give it/),
    ]);
  });

  test('reports what has no effect', async () => {
    await open({ serviceConfig: detecting({ failurePercentageEjection: {} }) });
    expect(warned()).toEqual([expect.stringMatching(/failurePercentageEjection has no effect/)]);
  });

  test('ignores the configuration when the option outlierDetection is given', async () => {
    const { client, states } = await open({
      serviceConfig: detecting({ baseEjectionTime: '0.001s' }),
      outlierDetection: { ejectionMs: 300_000 },
    });
    bed.unwell.set('a:1', () => Promise.reject(new RpcError(Status.INTERNAL, 'unwell')));
    for (let bad = 0; bad < 5; ) await client.fetch({}).catch(() => ++bad);
    for (let i = 0; i < 50; ++i) await client.fetch({}).catch(() => undefined);
    expect(states()).toBe('ejected ready');
  });
});
