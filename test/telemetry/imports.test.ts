/**
 * Tests that telemetry has no cost unless it is imported. The test follows the modules that the main entry
 * point loads, import by import.
 */
import { dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';
import { read } from '../house/tree.ts';

/** Returns files and packages that a module loads, including itself; type-only imports do not count. */
function loads(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  const imports = read(file).matchAll(/^(?:import|export)\s(?!type\s)(?:[^'"]*?from\s)?'([^']+)';/gms);
  for (const [, name = ''] of imports) {
    if (name.startsWith('.')) loads(normalize(join(dirname(file), name)), seen);
    else seen.add(name);
  }
  return seen;
}

const telemetry = (name: string) => /opentelemetry|prom-client|runtime\/telemetry\//.test(name);

test('the main entry point loads no telemetry', () => {
  const loaded = [...loads('runtime/index.ts')];
  expect(loaded).toContain('runtime/client/channel.ts');
  expect(loaded.filter(telemetry)).toEqual([]);
});

test.each([
  ['otel', '@opentelemetry/api'],
  ['prometheus', 'prom-client'],
])('rdma-rpc/%s loads %s, and no other package', (entry, name) => {
  const packages = [...loads(`runtime/adapters/telemetry/${entry}.ts`)].filter(
    (each) => !each.startsWith('runtime/'),
  );
  expect(packages.filter(telemetry)).toEqual([name]);
});
