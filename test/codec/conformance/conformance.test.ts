/**
 * Runs the cases of protobuf's conformance suite, under the same names and with the same subjects. The
 * schema, inputs and expectations are ours. The test prints the number of cases of each level that passed,
 * and names every case that did not. A case that is known to fail is listed with the reason, and fails the
 * test when it begins to pass.
 */

import * as codec from 'rdma-rpc/codec';
import { createRegistry, type MessageType } from 'rdma-rpc/codec';
import { fromJsonString, toJson, toJsonString } from 'rdma-rpc/json';
import { afterAll, describe, expect, test } from 'vitest';
import { AllTypes } from '../gen/conformance.rdma.ts';
import { type BinaryCase, binaryCases } from './binary-cases.ts';
import { jsonCases } from './json-all.ts';
import type { JsonCase } from './json-case.ts';
import { type OutputCase, outputCases } from './output-cases.ts';

/** The reason why a case fails on purpose. */
const failsBecause: Readonly<Record<string, string>> = {};

const registry = createRegistry(AllTypes, codec);
function runJson({ input, output, ignoreUnknownFields = false }: JsonCase): void {
  const read = () => fromJsonString(AllTypes, input, { registry, ignoreUnknownFields });
  if (output === 'refused') {
    expect(read).toThrow(codec.CodecError);
    return;
  }
  const message = AllTypes.decode(AllTypes.encode(read()));
  expect(toJson(AllTypes, message, { registry })).toEqual(output);
}

function runBinary({ input, output }: BinaryCase): void {
  if (output === 'refused') {
    expect(() => AllTypes.decode(input)).toThrow(codec.CodecError);
    return;
  }
  const message = AllTypes.decode(input);
  expect(toJson(AllTypes, message, { registry })).toEqual(output);
  expect(AllTypes.decode(AllTypes.encode(message))).toEqual(message);
}

function runOutput({ message, output }: OutputCase): void {
  const write = () => toJsonString(AllTypes as MessageType<unknown>, message, { registry });
  if (output === 'refused') expect(write).toThrow(codec.CodecError);
  else expect(write()).toBe(output);
}

const results = new Map<string, { passed: number; failed: string[] }>();

function check<C extends { readonly name: string; readonly level: string }>(
  group: string,
  cases: readonly C[],
  run: (each: C) => void,
): void {
  describe(group, () => {
    test.each(cases.map((each) => [each.name, each] as const))('%s', (name, each) => {
      const row = `${each.level} ${group}`;
      const result = results.get(row) ?? { passed: 0, failed: [] };
      results.set(row, result);
      const reason = failsBecause[`${group}.${name}`];
      let failure: unknown;
      try {
        run(each);
        result.passed++;
      } catch (error) {
        failure = error;
        result.failed.push(reason === undefined ? name : `${name} (${reason})`);
      }
      if (reason === undefined && failure !== undefined) throw failure;
      expect(failure === undefined, 'known to fail').toBe(reason === undefined);
    });
  });
}

check('JsonInput', jsonCases, runJson);
check('JsonOutput', outputCases, runOutput);
check('ProtobufInput', binaryCases, runBinary);

test('case names are unique, and each known failure names a case', () => {
  for (const cases of [jsonCases, outputCases, binaryCases] as const) {
    const names = cases.map(({ name }) => name);
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  }
  const all = jsonCases.map(({ name }) => `JsonInput.${name}`);
  expect(Object.keys(failsBecause).filter((name) => !all.includes(name))).toEqual([]);
});

afterAll(() => {
  const lines = [...results].map(([row, { passed, failed }]) => {
    const names = failed.length === 0 ? '' : `: ${failed.join(', ')}`;
    return `conformance, ${row.padEnd(26)} ${String(passed).padStart(4)} passed ${String(failed.length).padStart(3)} failed${names}`;
  });
  console.log(lines.join('\n'));
});
