/**
 * Tests floats. A number that is too large for a float is refused in every format. JSON and text use the
 * fewest digits that give the same float again, as C++, Go and Java do.
 */
import { CodecError, FloatValue } from 'rdma-rpc/codec';
import { fromJson, toJson, toJsonString } from 'rdma-rpc/json';
import { msgpackForm } from 'rdma-rpc/msgpack';
import { toText } from 'rdma-rpc/text';
import { describe, expect, test } from 'vitest';
import { runs } from '../extent.ts';
import { Maps, Optionals, Packed, Scalars, Unpacked } from './gen/everything.rdma.ts';

const max = 3.4028234663852886e38;
/** The number halfway from the largest float to the next power of two, which rounds to infinity. */
const away = 3.4028235677973366e38;

describe('values that no float can represent', () => {
  test.each([1e39, -1e39, away, -away, Number.MAX_VALUE])(
    '%s is refused, and the error names the field',
    (value) => {
      const error =
        /^corpus\.everything\.\w+\.\w+(?:\[.*\])?: expected a number of at most ±3\.4028234663852886e\+38, got number /;
      for (const encode of [
        () => Scalars.encode({ fFloat: value }),
        () => Optionals.encode({ fFloat: value }),
        () => Packed.encode({ fFloat: [1, value] }),
        () => Unpacked.encode({ fFloat: [1, value] }),
        () => Maps.encode({ bySfixed32: { 1: value } }),
        () => msgpackForm(256, Scalars, Scalars).input.encode({ fFloat: value }),
        () => toJson(Scalars, { fFloat: value }),
      ]) {
        expect(encode).toThrow(CodecError);
        expect(encode).toThrow(error);
      }
      expect(() => fromJson(Scalars, { fFloat: value })).toThrow(error);
    },
  );

  test.each([max, -max, away * (1 - 2 ** -53), Infinity, -Infinity, NaN, 1e-46, -0])(
    '%s is sent',
    (value) => {
      expect(Scalars.decode(Scalars.encode({ fFloat: value })).fFloat).toBe(Math.fround(value));
      expect(Packed.decode(Packed.encode({ fFloat: [value] })).fFloat).toEqual([Math.fround(value)]);
    },
  );

  test('can be sent as doubles', () => {
    expect(Scalars.decode(Scalars.encode({ fDouble: 1e39 })).fDouble).toBe(1e39);
  });
});

describe('floats are printed with the fewest digits', () => {
  test.each([
    [0.1, '0.1'],
    [1 / 3, '0.33333334'],
    [16_777_216, '16777216'],
    [1e20, '100000000000000000000'],
    // Six digits are used, as in C++.
    [1e-45, '1.4013e-45'],
    [max, '3.4028235e+38'],
    [1.5, '1.5'],
    [-2.7182817, '-2.7182817'],
  ])('%s is %s', (value, text) => {
    const message = FloatValue.decode(FloatValue.encode({ value }));
    expect(toJsonString(FloatValue, message)).toBe(text);
    expect(fromJson(FloatValue, JSON.parse(text))).toEqual(message);
    const scalars = Scalars.decode(Scalars.encode({ fFloat: value }));
    expect(toText(Scalars, scalars)).toContain(`f_float: ${text}`);
  });

  test(`${runs(100_000)} floats of all kinds come back from JSON as they were`, () => {
    const bits = new Uint32Array(1);
    const float = new Float32Array(bits.buffer);
    let state = 20_261_128;
    for (let i = 0; i < runs(100_000); i++) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      bits[0] = state;
      const [value = 0] = float;
      if (!Number.isFinite(value)) continue;
      const json = toJson(FloatValue, { value });
      expect(Math.fround(json as number)).toBe(value);
      expect(
        Number(json)
          .toExponential()
          .replace(/e.*|\D/g, '').length,
      ).toBeLessThanOrEqual(9);
    }
  });
});
