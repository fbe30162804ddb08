/** Messages known by their descriptors only, against generated code: the same bytes and the same JSON, both ways, for every message of the test schemas. */
import fc from 'fast-check';
import type { FileDescriptor } from 'rdma-rpc/codec';
import { fromJson, toJson } from 'rdma-rpc/json';
import { describe, expect, test } from 'vitest';
import { DynamicTypes } from '../../cli/server/dynamic-type.ts';
import { FileDescriptorProto } from '../../codegen/descriptor/descriptor.rdma.ts';
import { type AnyType, corpus, initOf, modules } from '../codec/corpus.ts';
import { meaningful } from '../codec/well-known-values.ts';
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
