/**
 * Tests details of errors. The decoded details equal the encoded ones, and gRPC peers see the same details.
 */
import { createClient, createInProcessChannel, Metadata, RpcError, Status } from 'rdma-rpc';
import { BadRequest, detail, ErrorInfo, StatusMessage } from 'rdma-rpc/details';
import { afterEach, describe, expect, test } from 'vitest';
import { detailsKey, encodeDetails, takeDetails } from '../../runtime/core/errors/status-details.ts';
import { EchoDefinition, EchoMessage } from '../runtime/gen/echo.rdma.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';

const violation = { fieldViolations: [{ field: 'order.count', description: 'is negative' }] };
const info = { reason: 'STOCK_EMPTY', domain: 'shop', metadata: { shelf: '3' } };

describe('an error', () => {
  const error = new RpcError(Status.INVALID_ARGUMENT, 'no', {
    details: [{ type: BadRequest, value: violation }, detail(ErrorInfo, info), detail(ErrorInfo, {})],
  });

  test('finds the details of a type, in order', () => {
    expect(error.findDetails(BadRequest)).toEqual([BadRequest.decode(BadRequest.encode(violation))]);
    expect(error.findDetails(ErrorInfo)).toEqual([ErrorInfo.create(info), ErrorInfo.create()]);
    expect(error.findDetails(EchoMessage)).toEqual([]);
  });

  test('passes the details of another error on', () => {
    const outer = new RpcError(Status.ABORTED, 'outer', { details: error.details });
    expect(outer.findDetails(ErrorInfo)).toHaveLength(2);
  });

  test('refuses a detail that cannot be encoded, by its field', () => {
    const details = [{ type: ErrorInfo, value: { reason: 5 } }];
    expect(() => new RpcError(Status.ABORTED, '', { details })).toThrow(/google.rpc.ErrorInfo.reason/);
  });

  test('omits details that do not match their declared type', () => {
    const broken = { type: ErrorInfo.typeName, value: Uint8Array.of(10, 200) };
    expect(new RpcError(Status.ABORTED, '', { details: [broken] }).findDetails(ErrorInfo)).toEqual([]);
  });
});

describe('on the wire', () => {
  test.each([
    ['nothing', []],
    ['a small one', [detail(ErrorInfo, info)]],
    ['a large one', [detail(ErrorInfo, { reason: 'x'.repeat(3000) }), detail(BadRequest, violation)]],
  ])('%s is the google.rpc.Status that generated code writes', (_, given) => {
    const { details } = new RpcError(Status.ABORTED, 'täxt', { details: given });
    const wire = encodeDetails(Status.ABORTED, 'täxt', details);
    const any = details.map(({ type, value }) => ({ typeUrl: `type.googleapis.com/${type}`, value }));
    expect(wire).toEqual(StatusMessage.encode({ code: 10, message: 'täxt', details: any }));
    expect(takeDetails(new Metadata({ [detailsKey]: wire }))).toEqual(details);
  });

  test.each([
    ['cut off', Uint8Array.of(26, 5, 1)],
    ['a wrong tag', Uint8Array.of(0)],
    ['text', new TextEncoder().encode('hello, details')],
  ])('%s stays in the metadata, and is no detail', (_, bytes) => {
    const metadata = new Metadata({ [detailsKey]: bytes });
    expect(takeDetails(metadata)).toEqual([]);
    expect(metadata.get(detailsKey)).toEqual(bytes);
  });
});

describe('from a handler', () => {
  let close: () => Promise<void>;
  let faults: unknown[];
  const open = (error: () => unknown) => {
    faults = [];
    const channel = createInProcessChannel(
      (server) =>
        server.add(EchoDefinition, {
          echo: (_, context) => {
            context.header.set('region', 'north');
            context.trailer.set('cost', '3');
            throw error();
          },
        }),
      { onHandlerError: (fault) => faults.push(fault) },
    );
    close = () => channel.close();
    return createClient(EchoDefinition, channel);
  };
  const failed = (call: Promise<unknown>) => call.then(() => undefined, RpcError.from);
  afterEach(() => close());

  test('the details reach the caller beside header, trailer and metadata', async () => {
    const client = open(
      () =>
        new RpcError(Status.NOT_FOUND, 'gone', {
          details: [detail(ErrorInfo, info)],
          trailer: new Metadata({ own: 'x' }),
        }),
    );
    const seen: string[] = [];
    const error = await failed(
      client.echo(
        {},
        {
          onHeader: (header) => seen.push(`header ${[...header]}`),
          onTrailer: (trailer) => seen.push(`trailer ${[...trailer]}`),
        },
      ),
    );
    expect(error).toMatchObject({ code: Status.NOT_FOUND, rawMessage: 'gone', processed: 'yes' });
    expect(error?.findDetails(ErrorInfo)).toEqual([ErrorInfo.create(info)]);
    expect([...error!.trailer]).toEqual([
      ['cost', '3'],
      ['own', 'x'],
    ]);
    expect(seen).toEqual(['header region,north', 'trailer cost,3,own,x']);
  });

  test('of a stream reach the caller after its messages', async () => {
    const channel = createInProcessChannel((server) =>
      server.add(StreamsDefinition, {
        *count() {
          yield { number: 1 };
          throw new RpcError(Status.NOT_FOUND, 'gone', { details: [detail(ErrorInfo, info)] });
        },
      }),
    );
    close = () => channel.close();
    const got: number[] = [];
    const error = await failed(
      (async () => {
        for await (const { number } of createClient(StreamsDefinition, channel).count({})) got.push(number);
      })(),
    );
    expect(got).toEqual([1]);
    expect(error?.findDetails(ErrorInfo)).toEqual([ErrorInfo.create(info)]);
  });

  test('details that do not fit are omitted, the status arrives, and the server is warned', async () => {
    const large = detail(ErrorInfo, { reason: 'x'.repeat(9000) });
    const error = await failed(
      open(() => new RpcError(Status.NOT_FOUND, 'gone', { details: [large] })).echo({}),
    );
    expect(error).toMatchObject({ code: Status.NOT_FOUND, rawMessage: 'gone', details: [] });
    expect(String(faults)).toMatch(/details of this error were left out: 90\d\d bytes, at most \d+ fit$/);
    expect(faults[0]).toMatchObject({ cause: { code: Status.NOT_FOUND } });
  });

  const sized = (bytes: number) =>
    new RpcError(Status.NOT_FOUND, 'gone', {
      details: [detail(ErrorInfo, { reason: 'x'.repeat(bytes) })],
      trailer: { 'retry-pushback-ms': '70' },
    });

  test('the size limit is exact, and the trailer arrives without them', async () => {
    const error = await failed(open(() => sized(9000)).echo({}));
    expect(error?.trailer.get('retry-pushback-ms')).toBe('70');
    await close();
    const [, given, fit] = /left out: (\d+) bytes, at most (\d+) fit/.exec(String(faults))!;
    const most = 9000 - (Number(given) - Number(fit));
    faults.length = 0;
    expect((await failed(open(() => sized(most)).echo({})))?.details).toHaveLength(1);
    await close();
    expect(faults).toEqual([]);
    expect((await failed(open(() => sized(most + 1)).echo({})))?.details).toEqual([]);
    expect(String(faults)).toContain(`${Number(fit) + 1} bytes, at most ${fit} fit`);
  });

  test('an error of another copy of this package, which does not know details, is still answered', async () => {
    const foreign = Object.assign(new Error('NOT_FOUND: x'), {
      name: 'RpcError',
      code: Status.NOT_FOUND,
      codeName: 'NOT_FOUND',
      rawMessage: 'x',
      processed: 'yes',
      [Symbol.for('rdma-rpc.RpcError')]: true,
    });
    expect(await failed(open(() => foreign).echo({}))).toMatchObject({
      code: Status.NOT_FOUND,
      rawMessage: 'x',
    });
  });
});
