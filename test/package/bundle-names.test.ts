/**
 * Tests that the classes in the package have the names under which they are exported. Stack traces, `inspect`
 * and loggers print them.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  exports: Record<string, string | { default: string }>;
};
const bundled = Object.entries(exports).flatMap(([name, entry]) =>
  typeof entry === 'object' && !name.endsWith('*') && /\/bundle\/.*\.js$/.test(entry.default)
    ? [[name, entry.default] as const]
    : [],
);
type Class = new (...given: never[]) => object;
const isClass = (value: unknown): value is Class =>
  typeof value === 'function' && /^class\b/.test(Function.prototype.toString.call(value));

describe('every class that the package exports has its own name', () => {
  test.each(bundled)('%s', async (_, path) => {
    const module = (await import(pathToFileURL(join(root, path)).href)) as Record<string, unknown>;
    const classes = Object.entries(module).filter(([, value]) => isClass(value)) as [string, Class][];
    expect(classes.map(([, { name }]) => name)).toEqual(classes.map(([name]) => name));
    for (const [, { prototype }] of classes) expect(inspect(prototype)).not.toMatch(/\b_[A-Z]/);
  });

  test('there are such classes', async () => {
    expect(bundled.length).toBeGreaterThan(5);
    const { RpcError, Metadata, Status } = (await import(
      pathToFileURL(join(root, 'dist/bundle/index.js')).href
    )) as typeof import('rdma-rpc');
    const error = new RpcError(Status.NOT_FOUND, 'not here');
    expect([error.name, error.constructor.name, RpcError.name, Metadata.name]).toEqual([
      'RpcError',
      'RpcError',
      'RpcError',
      'Metadata',
    ]);
    expect(inspect(error)).toMatch(/^RpcError: NOT_FOUND: not here/);
    expect(inspect(error.trailer)).not.toContain('_Metadata');
    // The static methods still find their class.
    expect(RpcError.from(error)).toBe(error);
    expect(RpcError.from(new Error('x'))).toBeInstanceOf(RpcError);
  });
});

test('no class of the bundle is renamed', () => {
  const index = readFileSync(join(root, 'dist/bundle/index.js'), 'utf8');
  const chunks = [...index.matchAll(/from "\.\/([\w-]+\.js)"/g)].map(([, name]) => name!);
  const texts = chunks.map((name) => readFileSync(join(root, 'dist/bundle', name), 'utf8'));
  expect(texts.filter((text) => /= class _\w/.test(text))).toEqual([]);
  expect(texts.length).toBeGreaterThan(0);
});
