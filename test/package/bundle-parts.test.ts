/**
 * Tests the files of dist/bundle: all their imports exist, and `rdma-rpc` consists of few files, because each
 * file takes time to find, read and link.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const folder = fileURLToPath(new URL('../../dist/bundle', import.meta.url));
const importsOf = (file: string): string[] =>
  [...readFileSync(join(folder, file), 'utf8').matchAll(/(?:from|import|import\() ?"\.\/([^"]+)"/g)].map(
    ([, name]) => name!,
  );

function closure(entry: string, seen = new Set<string>()): Set<string> {
  if (seen.has(entry)) return seen;
  seen.add(entry);
  const text = readFileSync(join(folder, entry), 'utf8');
  for (const [, name] of text.matchAll(/^(?:.* from|import) "\.\/([^"]+)";$/gm)) closure(name!, seen);
  return seen;
}

test('every import leads to a file', () => {
  const files = readdirSync(folder);
  const missing = files.flatMap((file) =>
    importsOf(file)
      .filter((name) => !existsSync(join(folder, name)))
      .map((name) => `${file}: ${name}`),
  );
  expect(missing).toEqual([]);
  expect(files.flatMap(importsOf).length).toBeGreaterThan(100);
});

test('rdma-rpc comes in five files, in which generated code and adapters to gRPC find theirs apart', () => {
  const parts = ['codec-parts.js', 'commands-parts.js', 'core-parts.js', 'runtime-parts.js'];
  expect([...closure('index.js')].toSorted()).toEqual([...parts, 'index.js'].toSorted());
  expect([...closure('generated-v1.js')]).not.toContain('core-parts.js');
  expect([...closure('grpc-server.js')]).not.toContain('runtime-parts.js');
  expect([...closure('cli.js')]).not.toContain('runtime-parts.js');
});
