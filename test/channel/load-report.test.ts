/** Tests load reports: their encoding, malformed ones, and the way from a handler to a weight. */
import { createClient, Metadata, RpcError, reportLoad, Status } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { replaceClock } from '../../runtime/clock.ts';
import { decodeLoadReport, encodeLoadReport, loadReportKey } from '../../runtime/core/load-report.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { OrcaLoadReport } from '../runtime/gen/orca.rdma.ts';
import { Random } from '../states/random.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { collect } from '../stream/stream-world.ts';
import { newLog, streamHandlers } from '../stream/streams-service.ts';
import { Bed, until } from './bed.ts';

const whole = {
  cpuUtilization: 0.25,
  memUtilization: 0.5,
  requestCost: { db: 3 },
  utilization: { disk: 0.75 },
  rpsFractional: 1000.5,
  eps: 2,
  namedMetrics: { queue: 7, ['x'.repeat(300)]: 1 },
  applicationUtilization: 0.9,
};

describe('the message', () => {
  test('is that of the published definition', () => {
    expect(OrcaLoadReport.decode(encodeLoadReport(whole))).toEqual({ ...OrcaLoadReport.create(), ...whole });
    expect(decodeLoadReport(OrcaLoadReport.encode(whole))).toEqual({
      qps: 1000.5,
      eps: 2,
      utilization: 0.9,
    });
    expect(decodeLoadReport(OrcaLoadReport.encode({ rps: 70n, cpuUtilization: 0.3 }))).toEqual({
      qps: 70,
      eps: 0,
      utilization: 0.3,
    });
  });

  test('malformed bytes give no report, and never an exception', () => {
    const good = encodeLoadReport(whole);
    const random = new Random(1);
    for (let i = 0; i < 20_000; ++i) {
      const bytes = Uint8Array.from(good.subarray(0, random.below(good.length + 1)));
      for (let changes = random.below(4); changes > 0 && bytes.length > 0; --changes)
        bytes[random.below(bytes.length)] = random.below(256);
      const report = decodeLoadReport(bytes);
      if (report !== undefined)
        for (const value of Object.values(report)) expect(value).toBeGreaterThanOrEqual(0);
    }
    expect(decodeLoadReport(good.subarray(0, 5))).toBeUndefined();
    expect(decodeLoadReport(Uint8Array.of(0))).toBeUndefined();
    expect(decodeLoadReport(new Uint8Array(0))).toEqual({ qps: 0, eps: 0, utilization: 0 });
  });

  test('values that are not numbers count as 0', () => {
    const report = { rpsFractional: 100, eps: Number.NaN, cpuUtilization: 0.5 };
    expect(decodeLoadReport(OrcaLoadReport.encode(report))).toEqual({ qps: 100, eps: 0, utilization: 0.5 });
  });

  test.each([[{ eps: -1 }], [{ cpuUtilization: Number.NaN }], [{ namedMetrics: { a: Infinity } }]])(
    '%j is refused',
    (report) => expect(() => encodeLoadReport(report)).toThrow(/is not a number of at least 0/),
  );
});

describe('a channel', () => {
  let bed: Bed;
  let nowMs = 0;
  beforeEach(() => {
    bed = new Bed();
    nowMs = 1000;
    replaceClock(() => nowMs);
  });
  afterEach(async () => {
    replaceClock(undefined);
    await bed.close();
  });

  test('distributes calls by the reports of its servers', async () => {
    for (const [address, applicationUtilization] of [
      ['a:1', 0.25],
      ['b:1', 0.75],
    ] as const)
      bed.start(
        address,
        reportLoad((measured) => ({ ...measured, rpsFractional: 10, applicationUtilization })),
      );
    const channel = bed.channel(['a:1', 'b:1'], {
      loadBalancing: 'weighted-round-robin',
      loadReports: { blackoutMs: 0, updateMs: 100 },
    });
    await channel.ready();
    await until(() => channel.addresses.every(({ state }) => state === 'ready'));
    const client = createClient(EchoDefinition, channel);
    const calls = async (count: number): Promise<string> => {
      let who = '';
      for (let i = 0; i < count; ++i) who += (await client.fetch({})).text[0];
      return [...who].sort().join('');
    };
    expect(await calls(8)).toBe('aaaabbbb');
    nowMs += 1000;
    await calls(8);
    nowMs += 1000;
    expect(await calls(8)).toBe('aaaaaabb');
    let trailer = new Metadata();
    await client.fetch({}, { onTrailer: (given) => (trailer = given) });
    expect(decodeLoadReport(trailer.get(loadReportKey) as Uint8Array)!.qps).toBe(10);
  });

  test('reads the reports at the end of streams', async () => {
    for (const [address, applicationUtilization] of [
      ['a:1', 0.25],
      ['b:1', 0.75],
    ] as const) {
      bed.start(
        address,
        reportLoad((measured) => ({ ...measured, rpsFractional: 10, applicationUtilization })),
      );
      bed.at(address).server.add(StreamsDefinition, {
        ...streamHandlers(newLog()),
        async *count() {
          yield { text: address };
        },
      });
    }
    const channel = bed.channel(['a:1', 'b:1'], {
      loadBalancing: 'weighted-round-robin',
      loadReports: { blackoutMs: 0, updateMs: 100 },
    });
    await channel.ready();
    await until(() => channel.addresses.every(({ state }) => state === 'ready'));
    const client = createClient(StreamsDefinition, channel);
    const streams = async (count: number): Promise<string> => {
      let who = '';
      for (let i = 0; i < count; ++i) for await (const { text } of client.count({})) who += text![0];
      return [...who].sort().join('');
    };
    expect(await streams(8)).toBe('aaaabbbb');
    nowMs += 1000;
    await streams(8);
    nowMs += 1000;
    expect(await streams(8)).toBe('aaaaaabb');
  });

  test('uses the report at the end of a stream, not the one at its beginning', async () => {
    let utilization = 0.25;
    bed.start(
      'a:1',
      reportLoad((measured) => ({ ...measured, applicationUtilization: utilization })),
    );
    bed.at('a:1').server.add(StreamsDefinition, {
      ...streamHandlers(newLog()),
      async *count({ text }) {
        yield {};
        nowMs += 60_000;
        utilization = 0.75;
        if (text === 'fail') throw new RpcError(Status.ABORTED, 'failed');
      },
    });
    const client = createClient(StreamsDefinition, bed.channel(['a:1']));
    const reported = async (text: string): Promise<number | undefined> => {
      utilization = 0.25;
      nowMs += 60_000;
      let trailer = new Metadata();
      const stream = client.count({ text }, { onTrailer: (given) => (trailer = given) });
      await collect(stream).catch(() => undefined);
      return decodeLoadReport(trailer.get(loadReportKey) as Uint8Array)?.utilization;
    };
    expect(await reported('')).toBe(0.75);
    expect(await reported('fail')).toBe(0.75);
  });
});
