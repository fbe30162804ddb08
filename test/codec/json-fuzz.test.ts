/**
 * Tests hostile JSON: parsing any input either gives a message that can be written again, or throws
 * CodecError. The test is seeded, so that a failure is reproducible.
 */
import fc from 'fast-check';
import * as codec from 'rdma-rpc/codec';
import { CodecError, createRegistry } from 'rdma-rpc/codec';
import { fromJson, type JsonValue, toJson } from 'rdma-rpc/json';
import { expect, test } from 'vitest';
import { runs } from '../extent.ts';
import { jsonCases } from './conformance/json-all.ts';
import { type AnyMessage, type AnyType, corpus, modules, pairOf } from './corpus.ts';
import { AllTypes } from './gen/conformance.rdma.ts';

const seed = 20_261_124;
const registry = createRegistry(codec, ...modules);

/** Returns true when the input was accepted. An error other than CodecError fails the test. */
function survives(type: AnyType, json: JsonValue, ignoreUnknownFields: boolean): boolean {
  let message: AnyMessage;
  try {
    message = fromJson(type, json, { registry, ignoreUnknownFields });
  } catch (error) {
    if (error instanceof CodecError) return false;
    throw error;
  }
  expect(type.decode(type.encode(message))).toEqual(message);
  toJson(type, message, { registry });
  return true;
}

test('random JSON is parsed or refused by any type', () => {
  const property = fc.property(
    fc.constantFrom(...corpus),
    fc.jsonValue(),
    fc.boolean(),
    ({ ours }, json, lax) => {
      survives(ours, json as JsonValue, lax);
    },
  );
  fc.assert(property, { seed, numRuns: runs(2000) });
});

/** Replaces one value somewhere in `json` by `other`; `path` chooses where. */
function replaced(json: JsonValue, path: readonly number[], other: JsonValue): JsonValue {
  const [step, ...rest] = path;
  if (step === undefined || typeof json !== 'object' || json === null) return other;
  if (Array.isArray(json)) {
    const list = json as readonly JsonValue[];
    return list.map((value, i) => (i === step % list.length ? replaced(value, rest, other) : value));
  }
  const entries = Object.entries(json as { readonly [key: string]: JsonValue });
  return Object.fromEntries(
    entries.map(([key, value], i) => [
      key,
      i === step % entries.length ? replaced(value, rest, other) : value,
    ]),
  );
}

test('conformance inputs with one value replaced are parsed or refused', () => {
  const valid = jsonCases.filter(({ output }) => output !== 'refused').map(({ input }) => input);
  const other = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.constantFrom<JsonValue>(null, '', '-1', 'NaN', '1e999', 1e300, -0, '__proto__', { '@type': 'x/y' }, [
      null,
    ]),
  );
  const { ours } = pairOf(AllTypes.typeName);
  const property = fc.property(
    fc.constantFrom(...valid),
    fc.array(fc.nat({ max: 9 }), { maxLength: 4 }),
    other,
    (input, path, value) => {
      survives(ours, replaced(JSON.parse(input) as JsonValue, path, value as JsonValue), false);
    },
  );
  fc.assert(property, { seed, numRuns: runs(3000) });
});
