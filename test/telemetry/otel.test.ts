/**
 * Tests the OpenTelemetry interceptor with the SDK: spans, their context across processes and nested calls,
 * durations.
 */
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import {
  AggregationTemporality,
  DataPointType,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { createClient, RpcError, Status } from 'rdma-rpc';
import { openTelemetry } from 'rdma-rpc/otel';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { durationBounds } from '../../runtime/adapters/telemetry/observed-call.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { openPair, type Pair } from '../runtime/pair.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { collect } from '../stream/stream-world.ts';
import { newLog, streamHandlers } from '../stream/streams-service.ts';

let spans: InMemorySpanExporter;
let measured: InMemoryMetricExporter;
let reader: PeriodicExportingMetricReader;
let pairs: Pair[] = [];

const setUp = () => {
  spans = new InMemorySpanExporter();
  measured = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  reader = new PeriodicExportingMetricReader({ exporter: measured, exportIntervalMillis: 3_600_000 });
  return openTelemetry({
    tracerProvider: new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }),
    meterProvider: new MeterProvider({ readers: [reader] }),
    propagator: new W3CTraceContextPropagator(),
    attributes: ({ metadata: header }) => ({ 'app.user': String(header.get('user')) }),
  });
};

/** Opens a server whose `echo` answers as the text says, and a client, both observed. */
async function open(register?: Parameters<typeof openPair>[1]) {
  const observe = setUp();
  const pair = await openPair('shm', (server) => {
    server.use(observe);
    if (register !== undefined) return register(server);
    return server.add(EchoDefinition, {
      echo: (request) => {
        if (request.text === 'gone') throw new RpcError(Status.NOT_FOUND, 'no such thing');
        if (request.text === 'broken') throw new Error('a secret');
        return request;
      },
    });
  });
  pairs.push(pair);
  return { pair, defaults: { '*': { interceptors: [observe] } } };
}

const finished = () => {
  const all = spans.getFinishedSpans();
  return {
    client: all.filter(({ kind }) => kind === SpanKind.CLIENT),
    server: all.filter(({ kind }) => kind === SpanKind.SERVER),
  };
};

beforeEach(() => {
  pairs = [];
});
afterEach(async () => {
  for (const pair of pairs) await pair.close();
  await reader.shutdown();
  context.disable();
  propagation.disable();
});

describe('spans', () => {
  test('of client and server belong together and describe the call', async () => {
    const { pair, defaults } = await open();
    await createClient(EchoDefinition, pair.channel, defaults).echo({}, { metadata: { user: 'ada' } });
    const { client, server } = finished();
    const [, port] = pair.channel.address.split(':');
    const common = {
      'rpc.system.name': 'rdma_rpc',
      'rpc.method': 'test.echo.Echo/Echo',
      'rpc.response.status_code': 'OK',
      'app.user': 'ada',
    };
    expect(client).toHaveLength(1);
    expect(client[0]).toMatchObject({
      name: 'test.echo.Echo/Echo',
      attributes: { ...common, 'server.address': '127.0.0.1', 'server.port': Number(port) },
      status: { code: SpanStatusCode.UNSET },
    });
    expect(server[0]).toMatchObject({
      name: 'test.echo.Echo/Echo',
      attributes: { ...common, 'client.address': '127.0.0.1' },
      parentSpanContext: { spanId: client[0]!.spanContext().spanId, isRemote: true },
    });
    expect(server[0]!.spanContext().traceId).toBe(client[0]!.spanContext().traceId);
  });

  test.each([
    ['gone', 'NOT_FOUND', SpanStatusCode.UNSET, 'an answer of the server'],
    ['broken', 'INTERNAL', SpanStatusCode.ERROR, 'a fault of the server'],
  ])('%s: %s, on the server %i: %s', async (text, code, serverStatus) => {
    const { pair, defaults } = await open();
    await createClient(EchoDefinition, pair.channel, defaults)
      .echo({ text })
      .catch(() => undefined);
    const { client, server } = finished();
    expect(client[0]).toMatchObject({
      attributes: { 'rpc.response.status_code': code, 'error.type': code },
      status: { code: SpanStatusCode.ERROR },
    });
    expect(server[0]).toMatchObject({
      attributes: { 'rpc.response.status_code': code },
      status: { code: serverStatus },
    });
    expect(server[0]!.attributes['error.type']).toBe(
      serverStatus === SpanStatusCode.ERROR ? code : undefined,
    );
    expect(server[0]!.events.map(({ name }) => name)).toEqual(text === 'broken' ? ['exception'] : []);
  });

  test.each([
    ['by a context manager', true],
    ['by the context that the handler passes on', false],
  ])('of nested calls hang on that of the handler: %s', async (_, manager) => {
    if (manager) context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    const { pair: back, defaults } = await open();
    const backClient = createClient(EchoDefinition, back.channel, defaults);
    const backSpans = spans;
    const front = await open((server) =>
      server.add(EchoDefinition, {
        echo: async (request, handler) => {
          await null;
          expect(trace.getSpan(context.active()) !== undefined).toBe(manager);
          return backClient.echo(request, manager ? {} : { context: handler });
        },
      }),
    );
    await createClient(EchoDefinition, front.pair.channel, front.defaults).echo({});
    const [handler] = finished().server;
    const nested = backSpans.getFinishedSpans().find(({ kind }) => kind === SpanKind.CLIENT);
    expect(nested?.parentSpanContext?.spanId).toBe(handler!.spanContext().spanId);
  });

  test('of streams last until their last message, or until the reader stops', async () => {
    const { pair, defaults } = await open((server) =>
      server.add(StreamsDefinition, streamHandlers(newLog())),
    );
    const client = createClient(StreamsDefinition, pair.channel, defaults);
    let early = 0;
    for await (const _ of client.count({ count: 3 })) early += finished().client.length;
    expect(early).toBe(0);
    expect(finished().client).toMatchObject([{ attributes: { 'rpc.response.status_code': 'OK' } }]);
    expect(finished().server).toHaveLength(1);
    for await (const _ of client.behave({ count: 1_000_000 })) break;
    await expect.poll(() => finished().server.length).toBe(2);
    const { client: left, server } = finished();
    expect([left[1], server[1]].map((span) => span!.attributes['rpc.response.status_code'])).toEqual([
      'CANCELLED',
      'CANCELLED',
    ]);
    await expect(collect(client.behave({ text: 'not found' }))).rejects.toThrow();
    expect(finished().client[2]).toMatchObject({ attributes: { 'error.type': 'NOT_FOUND' } });
  });
});

test('durations are histograms in seconds with buckets of microseconds, by method and status', async () => {
  const { pair, defaults } = await open();
  const { echo } = createClient(EchoDefinition, pair.channel, defaults);
  await echo({});
  await echo({});
  await echo({ text: 'gone' }).catch(() => undefined);
  await reader.forceFlush();
  const metrics = measured.getMetrics().at(-1)!.scopeMetrics[0]!.metrics;
  expect(metrics.map(({ descriptor }) => [descriptor.name, descriptor.unit]).sort()).toEqual([
    ['rpc.client.call.duration', 's'],
    ['rpc.server.call.duration', 's'],
  ]);
  for (const metric of metrics) {
    if (metric.dataPointType !== DataPointType.HISTOGRAM) throw new Error('expected a histogram');
    const points = metric.dataPoints.map(({ attributes, value }) => [
      attributes['rpc.method'],
      attributes['rpc.response.status_code'],
      value.count,
    ]);
    expect(points).toEqual([
      ['test.echo.Echo/Echo', 'OK', 2],
      ['test.echo.Echo/Echo', 'NOT_FOUND', 1],
    ]);
    const { boundaries } = metric.dataPoints[0]!.value.buckets;
    expect(boundaries).toEqual(durationBounds);
    expect(boundaries[0]).toBe(1e-6);
  }
});

test('without an SDK it does nothing', async () => {
  setUp();
  const idle = openTelemetry();
  const pair = await openPair('sim', (server) =>
    server
      .use(idle)
      .add(EchoDefinition, { echo: ({ text }, { metadata }) => ({ text, number: metadata.size }) }),
  );
  pairs.push(pair);
  const { echo } = createClient(EchoDefinition, pair.channel, { '*': { interceptors: [idle] } });
  expect(await echo({ text: 'x' })).toMatchObject({ text: 'x', number: 0 });
});
