/**
 * Tests the requests of `rdma-rpc bench`: constant JSON, and templates that produce a different request for
 * each call.
 */
import { describe, expect, test } from 'vitest';
import { requestsOf } from '../../../cli/bench/data.ts';
import { templateOf } from '../../../cli/bench/template.ts';
import { fileRegistry } from '../../../cli/server/schema/file-schema.ts';
import { root } from '../../house/tree.ts';
import { EchoMessage } from '../../runtime/gen/echo.rdma.ts';

const proto = [`${root}/test/runtime/protos/echo.proto`];
const registry = fileRegistry({ proto, include: [], protoset: [] });
const form = { input: registry.getMessage('test.echo.EchoMessage')!, registry, ignoreUnknownFields: false };
const texts = async (data: string, calls: number, stream = false): Promise<string[][]> => {
  const requests = await requestsOf(data, form, stream);
  return Array.from({ length: calls }, (_, call) =>
    requests({ call, worker: call % 2 }).map((bytes) => EchoMessage.decode(bytes).text),
  );
};

describe('requests', () => {
  test.each<[string, string, string[][]]>([
    ['one request is used for every call', '{"text":"a"}', [['a'], ['a'], ['a']]],
    ['the requests of an array are used in turn', '[{"text":"a"},{"text":"b"}]', [['a'], ['b'], ['a']]],
    ['several JSON values are used in turn', '{"text":"a"} {"text":"b"}', [['a'], ['b'], ['a']]],
    ['a template can contain the number of the call', '{"text":"{{.RequestNumber}}"}', [['0'], ['1'], ['2']]],
    [
      'a template can contain the number of the worker',
      '[{"text":"x"},{"text":"{{.WorkerID}}"}]',
      [['x'], ['1'], ['x']],
    ],
  ])('%s', async (_, data, expected) => {
    expect(await texts(data, 3)).toEqual(expected);
  });

  test('all requests are sent in each call of a stream', async () => {
    expect(await texts('[{"text":"a"},{"text":"{{.RequestNumber}}"}]', 2, true)).toEqual([
      ['a', '0'],
      ['a', '1'],
    ]);
  });

  test.each([
    ['{"txet":"a"}', /unknown field "txet"; did you mean text/],
    ['{"text":', /not JSON/],
    ['', /contains no request/],
    ['{"text":"{{randomString 5}}"}', /randomString takes 2 numbers/],
    ['{"text":{{randomInt 1 5}}}', /text/],
  ])('%j is refused', async (data, error) => {
    await expect(requestsOf(data, form, false)).rejects.toThrow(error);
  });
});

describe('templates', () => {
  const made = (text: string): string => templateOf(text)!({ call: 7, worker: 3 });

  test.each([
    ['{{ .RequestNumber }}/{{.WorkerID}}', /^7\/3$/],
    ['{{.UUID}}', /^[0-9a-f-]{36}$/],
    ['{{newUUID}}', /^[0-9a-f-]{36}$/],
    ['{{.Timestamp}}', /^20\d\d-.*Z$/],
    ['{{.TimestampUnix}} {{.TimestampUnixMilli}}', /^\d{10} \d{13}$/],
    ['{{randomInt 3 5}}', /^[34]$/],
    ['{{randomString 4 4}}', /^[a-zA-Z0-9]{4}$/],
    ['{{randomBytes 3}}', /^[\w+/]{4}$/],
  ])('%s is replaced', (text, expected) => {
    expect(made(text)).toMatch(expected);
  });

  test('JSON with adjacent braces is not a template', () => {
    expect(templateOf('{"a":{"b":{}}}')).toBeUndefined();
  });

  test.each([
    ['{{.RequestNumbr}}', /did you mean \.RequestNumber/],
    ['{{}}', /unknown action \(empty\)/],
    ['{{randomInt 5 5}}', /the first below the second/],
    ['{{randomBytes 1e12}}', /length up to/],
    ['{{constructor}}', /unknown action constructor/],
  ])('%s is refused', (text, error) => {
    expect(() => templateOf(text)).toThrow(error);
  });
});
