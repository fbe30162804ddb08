/** Messages known by their descriptors only, against generated code: the same bytes and the same JSON, both ways, for every message of the test schemas. */
import fc from 'fast-check';
import { createRegistry, type FileDescriptor } from 'rdma-rpc/codec';
import { fromJson, toJson } from 'rdma-rpc/json';
import { describe, expect, test } from 'vitest';
import { DynamicTypes } from '../../cli/server/dynamic-type.ts';
import { FileDescriptorProto } from '../../codegen/descriptor/descriptor.rdma.ts';
import { type AnyType, corpus, initOf, modules } from '../codec/corpus.ts';
import { meaningful } from '../codec/well-known-values.ts';
import * as edition from '../codegen/gen/edition.rdma.ts';
import * as proto2 from '../codegen/gen/proto2.rdma.ts';
import { EchoMessage, file_echo_proto } from '../runtime/gen/echo.rdma.ts';

fc.configureGlobal({ seed: 20_261_121 });

/** With all that they import. */
function decoded(files: readonly FileDescriptor[]): FileDescriptorProto[] {
  const found = new Map<string, FileDescriptor>();
  const add = (file: FileDescriptor): void => {
    if (found.has(file.name)) return;
    found.set(file.name, file);
    file.dependencies.forEach(add);
  };
  files.forEach(add);
  return [...found.values()].map(({ bytes }) => FileDescriptorProto.decode(bytes));
}

const files = modules.flatMap((module) =>
  Object.entries(module).flatMap(([name, value]) =>
    name.startsWith('file_') ? [value as FileDescriptor] : [],
  ),
);
const types = new DynamicTypes(decoded(files));

test.each(corpus.map((pair) => [pair.name, pair] as const))('%s', (name, { ours, theirs }) => {
  const dynamic = types.message(name);
  let compared = 0;
  fc.assert(
    fc.property(initOf(theirs, 1, meaningful), (init) => {
      const bytes = ours.encode(init);
      let json: ReturnType<typeof toJson>;
      try {
        json = toJson(ours, ours.decode(bytes));
      } catch {
        // An Any of a type that is not registered, a Timestamp out of range.
        return;
      }
      expect(toJson(dynamic, dynamic.decode(bytes))).toEqual(json);
      const back = dynamic.encode(fromJson(dynamic, json));
      expect(toJson(ours, ours.decode(back) as never)).toEqual(json);
      ++compared;
    }),
    { numRuns: 60 },
  );
  expect(compared).toBeGreaterThan(0);
});

describe('bytes that are no message', () => {
  const dynamic = new DynamicTypes(decoded([file_echo_proto])).message('test.echo.EchoMessage');
  const outcome = (type: AnyType, bytes: Uint8Array): unknown => {
    try {
      return toJson(type, type.decode(bytes));
    } catch (error) {
      return (error as Error).name;
    }
  };

  test('are refused where generated code refuses them, and read where it reads them', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        expect(outcome(dynamic, bytes)).toEqual(outcome(EchoMessage as unknown as AnyType, bytes));
      }),
      { numRuns: 2000 },
    );
  });
});

test('what the descriptors lack is named', () => {
  expect(() => types.message('no.Such')).toThrow(/do not declare no.Such/);
  expect(types.method('test.echo.Echo/Nope')).toBeUndefined();
});

describe('groups, extensions and features', () => {
  const {
    Everything,
    Extendable,
    Extendable_inside,
    grouped,
    levels,
    message,
    number$: number,
    texts,
  } = proto2;
  const declared = new DynamicTypes(decoded([proto2.file_proto2_proto, edition.file_edition_proto]));
  const { registry } = declared;
  const known = createRegistry(proto2, edition);

  const extended = Extendable.create({ known: 1 });
  Extendable_inside.set(extended, 'in');
  number.set(extended, -7n);
  levels.set(extended, [1, 5, -3]);
  message.set(extended, { x: 4 });
  grouped.set(extended, { text: 'g' });
  texts.set(extended, ['a', '']);

  const must = { id: 1, name: 'n', must: {} };
  const everything = Everything.create({
    ...must,
    part: { text: 't', inner: must, piece: [{ number: -1 }, { number: 2 }] },
    item: [{ amount: 1 }, {}],
    choice: { case: 'chosen', value: { really: false } },
    loose: [1, 2],
    tight: [3],
    levels: { a: { x: 1 } },
  });

  test.each<[string, AnyType, object]>([
    ['groups: alone, repeated, in each other, in a oneof', Everything as never, everything],
    ['extensions of every kind', Extendable as never, extended],
    ['none', Extendable as never, Extendable.create()],
    [
      'presence and groups by features',
      edition.Features as never,
      edition.Features.create({
        implicit: 0,
        explicit: 0,
        required: '',
        packed: [1, 2],
        expanded: [3],
        prefixed: { deeper: { text: 'd' }, map: { k: { deeper: {} } } },
        delimited: { text: 'x' },
        groups: [{}, { text: 'y' }],
        closed: 5,
      }),
    ],
  ])('%s', (_what, type, value) => {
    const dynamic = declared.message(type.typeName);
    const json = toJson(type, value as never, { registry: known });
    expect(toJson(dynamic, dynamic.decode(type.encode(value as never)), { registry })).toEqual(json);
    const back = dynamic.encode(fromJson(dynamic, json, { registry }));
    expect(type.decode(back)).toEqual(type.decode(type.encode(value as never)));
  });

  test('an Any holds what the descriptors declare', () => {
    const any = types.message('google.protobuf.Any');
    const json = { '@type': 'type.googleapis.com/test.echo.EchoMessage', text: 'hi' };
    const echo = new DynamicTypes(decoded([file_echo_proto]));
    const bytes = any.encode(fromJson(any, json, { registry: echo.registry }));
    expect(toJson(any, any.decode(bytes), { registry: echo.registry })).toEqual(json);
    expect(() => fromJson(any, { ...json, '@type': 'x/no.Such' }, { registry: echo.registry })).toThrow(
      /no\.Such/,
    );
  });

  test('a group that does not end, or ends as another one', () => {
    const dynamic = declared.message('lang.proto2.Everything');
    expect(() => dynamic.decode(new Uint8Array([0x5b]))).toThrow(/has no end/);
    expect(() => dynamic.decode(new Uint8Array([0x5b, 0x64]))).toThrow(/closed by field 12/);
  });
});
