/** Tests that in protobuf's text format, typed arrays are escaped bytes, like any `bytes` field. */
import { fromText, toText } from 'rdma-rpc/text';
import { expect, test } from 'vitest';
import { All } from './gen/arrays.rdma.ts';

test('they are parsed as they were printed', () => {
  const message = All.create({
    float32: Float32Array.of(1.5, -2),
    list: [Int16Array.of(7)],
    named: { a: Float64Array.of(1) },
  });
  expect(fromText(All, toText(All, message))).toEqual(message);
  expect(() => fromText(All, 'float32: "abc"')).toThrow(
    /float32: expected a whole number of elements of a Float32Array/,
  );
  expect(() => toText(All, { float32: [1] } as never)).toThrow(/a Float32Array/);
});
