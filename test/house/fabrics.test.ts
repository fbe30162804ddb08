/**
 * Tests that a fabric is an entry of one table. No other file of the runtime or the commands checks for a
 * fabric by its name.
 */
import { expect, test } from 'vitest';
import { fabrics } from '../../runtime/fabrics.ts';
import { projectFiles, read } from './tree.ts';

const table = 'runtime/fabrics.ts';
/**
 * The files that may check for a fabric by its name: `createInProcessChannel` chooses its fabric itself, perf
 * has a list of fabrics of its own, and users of `rdma-rpc/verbs` name the fabric that they open.
 */
const choosesItself =
  /^(runtime\/in-process\.ts|runtime\/verbs\/.*|runtime\/native\/verbs-device\.ts|cli\/perf\/.*)$/;

/**
 * Returns whether the text names the fabric, other than as an address's kind (`kind: 'tcp'`) or an option's
 * name (`Omit<…, 'verbs'>`).
 */
function named(text: string, fabric: string): boolean {
  return new RegExp(`(===|case|fabric:|fabrics:|\\[) *'${fabric}'`).test(
    text.replaceAll(/kind(:| [!=]==) 'tcp'/g, ''),
  );
}

test.each(Object.keys(fabrics))('no file outside of the table compares a name with %s', (fabric) => {
  const files = projectFiles().filter(
    (file) => /^(runtime|cli|codegen)\/.*\.ts$/.test(file) && file !== table && !choosesItself.test(file),
  );
  expect(files.length).toBeGreaterThan(400);
  expect(files.filter((file) => named(read(file), fabric))).toEqual([]);
});

test.each([
  ["if (fabric === 'shm-fd') return;", true],
  ["case 'shm-fd':", true],
  ["const some = ['shm-fd', 'verbs'];", true],
  ["if (name !== fabric) say('shm-fd is another');", false],
])('it would be seen in: %s', (line, expected) => {
  expect(named(line, 'shm-fd')).toBe(expected);
});
