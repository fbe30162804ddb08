/**
 * Tests the columns in which requests and completions cross the boundary. TypeScript must have the same
 * columns as native code.
 */
import { expect, test } from 'vitest';
import { loadNative } from '../../runtime/native/native.ts';
import * as rows from '../../runtime/native/verbs-device.ts';

test('both sides have the same columns', () => {
  expect(loadNative().verbsRecords()).toEqual({ ...rows });
});
