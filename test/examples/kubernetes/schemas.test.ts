/**
 * Tests that each object of examples/kubernetes and of the pages fits the published schemas, and the check
 * finds deliberate mistakes.
 */
import { describe, expect, test } from 'vitest';
import { type Manifest, manifests, objectOf, part, shown } from './manifests.ts';
import { invalid, mistyped } from './published.ts';

const all = [...manifests, ...shown];

describe.each(all)('$file: $object.kind $object.metadata.name', ({ object }) => {
  test('has valid values', async () => {
    expect(await invalid(object)).toBe('');
  });
});

/** The rules of the alerts, in the form that the Prometheus operator accepts. */
const alerts: Manifest = {
  apiVersion: 'monitoring.coreos.com/v1',
  kind: 'PrometheusRule',
  metadata: { name: 'rdma-rpc' },
  spec: part('../dashboard/alerts.yaml'),
};

test('the alerts are the spec of a PrometheusRule', async () => {
  expect(await invalid(alerts)).toBe('');
});

function deploymentOf(file: string): Manifest {
  return manifests.find((each) => each.file === file && each.object.kind === 'Deployment')!.object;
}

type Edit = (text: string) => string;
const edits: [string, Edit, RegExp][] = [
  [
    'a field that does not exist',
    (text) => text.replace('"readinessProbe"', '"readynessProbe"'),
    /readynessProbe/,
  ],
  [
    'a field of another type',
    (text) => text.replace('"containerPort":5000', '"containerPort":"rpc"'),
    /number/,
  ],
  ['a required field that lacks', (text) => text.replace('"selector":', '"selektor":'), /selektor|selector/],
];

test('pages show objects', () => {
  expect(shown.length).toBeGreaterThan(4);
});

test('every object has only fields that exist, and mistakes are found', () => {
  const deployment = deploymentOf('tcp.yaml');
  const wrong = edits.map(([, edit]) => JSON.parse(edit(JSON.stringify(deployment))) as Manifest);
  const right = [...all.map(({ object }) => object), alerts, withHugePages(deployment)];
  const found = mistyped([...right, ...wrong]);
  expect(found.slice(0, right.length)).toEqual(right.map(() => ''));
  for (const [i, [what, , message]] of edits.entries())
    expect(found[right.length + i], what).toMatch(message);
});

test('a wrong value is found', async () => {
  const policy = objectOf<Manifest>('NetworkPolicy');
  const text = JSON.stringify(policy).replace('"port":"rpc"', '"port":{}');
  expect(await invalid(JSON.parse(text) as Manifest)).not.toBe('');
  expect(await invalid({ ...policy, kind: 'NetworkPolicies' })).toMatch('has no NetworkPolicies');
});

type Tree = { readonly [key: string]: unknown };

/** Applies the patch as `kubectl patch` does: objects are merged, and containers are merged by name. */
function merged(base: unknown, patch: unknown): unknown {
  if (Array.isArray(base) && Array.isArray(patch))
    return (base as Tree[]).map((each) => {
      const change = (patch as Tree[]).find(({ name }) => name === each.name);
      return change === undefined ? each : merged(each, change);
    });
  if (typeof base !== 'object' || typeof patch !== 'object' || base === null || patch === null) return patch;
  const result: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(patch))
    result[key] = key in base ? merged((base as Tree)[key], value) : value;
  return result;
}

function withHugePages(deployment: Manifest): Manifest {
  return merged(deployment, part('hugepages.yaml')) as Manifest;
}

test('the patch for huge pages changes the container of the servers', async () => {
  const patched = withHugePages(deploymentOf('dra.yaml'));
  expect(await invalid(patched)).toBe('');
  expect(JSON.stringify(patched)).toMatch(/"requests":\{"cpu":"2","memory":"1Gi","hugepages-2Mi":"64Mi"\}/);
});
