/**
 * Compares the manifests of examples/kubernetes with the sources of the programs: ports, paths, names,
 * variables and metrics. The objects must also refer to each other correctly.
 */
import { describe, expect, test } from 'vitest';
import { graceMs, metricsPath, ports, service } from '../../../examples/kubernetes/settings.ts';
import { exists, read } from '../../house/tree.ts';
import { exported } from '../exported.ts';
import { parsed } from '../promql.ts';
import { manifests, objectOf, part, servers, type Workload, workloads } from './manifests.ts';

const serverPorts = Object.entries(ports).map(([name, containerPort]) => ({ name, containerPort }));

describe.each(workloads)('$file', ({ workload }) => {
  const { spec } = workload.spec.template;
  const [container] = spec.containers;

  test('runs a program of this project', () => {
    const [, program = ''] = container!.args;
    expect(exists(program.replace(/^dist\//, '').replace(/\.js$/, '.ts'))).toBe(true);
    expect(manifests.some(({ object }) => object.metadata.name === spec.serviceAccountName)).toBe(true);
  });

  test('sets variables that the program or the package reads, to values that it takes', () => {
    const [, program = ''] = container!.args;
    const source = read(program.replace(/^dist\//, '').replace(/\.js$/, '.ts'));
    const options = read('docs/reference/options.md');
    for (const { name, value } of container!.env ?? []) {
      expect(
        name.startsWith('RDMA_RPC_') ? options.includes(`\`${name}\``) : source.includes(name),
        name,
      ).toBe(true);
      if (name === 'RDMA_RPC_FABRIC')
        expect(value).toMatch(/^(tcp|verbs|shm|shm-fd)(,(tcp|verbs|shm|shm-fd))*$/);
    }
  });

  test('pins memory only with the right to, and then as root, whose capabilities alone have an effect', () => {
    const { add = [] } = container!.securityContext.capabilities;
    const pins = (container!.env ?? []).some(({ value = '' }) => value.includes('verbs'));
    expect(add).toEqual(pins ? ['IPC_LOCK'] : []);
    expect(spec.securityContext.runAsUser === 0).toBe(pins);
  });
});

describe.each(servers)('$file', ({ workload }) => {
  const { spec, metadata } = workload.spec.template;
  const [container] = spec.containers;

  test('has the ports of the program, and probes that use them', () => {
    expect(container!.ports).toEqual(serverPorts);
    const probes = JSON.stringify(container).match(/"httpGet":\{[^}]*\}/g);
    expect(probes).toHaveLength(3);
    for (const probe of probes!) expect(probe).toMatch(/"path":"\/(healthz|readyz)","port":"probes"/);
  });

  test('gives the drain the time that it takes', () => {
    const { seconds } = container!.lifecycle!.preStop.sleep;
    expect(spec.terminationGracePeriodSeconds).toBeGreaterThan(seconds + graceMs / 1000);
  });

  test('has the labels by which services and policies select it', () => {
    const selectors = manifests.flatMap(({ file, object }) =>
      file === 'base.yaml'
        ? [...JSON.stringify(object).matchAll(/\{"(app|greeter-client)":"([^"]+)"\}/g)]
        : [],
    );
    expect(selectors.length).toBeGreaterThan(4);
    const client = objectOf<Workload>('StatefulSet', 'greeter-client').spec.template.metadata.labels;
    for (const [, label = '', value] of selectors)
      expect([metadata.labels[label], client[label]]).toContain(value);
  });
});

test('the client looks for the Service and the port that exist, and may do so', () => {
  const { spec } = objectOf<{ spec: { ports: { name: string; port: number }[] } }>('Service');
  expect(spec.ports).toContainEqual(expect.objectContaining({ name: service.port, port: ports.rpc }));
  expect(service.service).toBe('greeter');
  const { rules } = objectOf<{ rules: { resources: string[]; verbs: string[] }[] }>('Role', 'find-greeter');
  expect(rules).toEqual([
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
  ]);
});

test('policies and monitors name ports of the pods', () => {
  for (const { object } of manifests)
    for (const [, port] of JSON.stringify(object).matchAll(/"port":"([^"]+)"/g))
      expect(Object.keys(ports)).toContain(port);
  for (const kind of ['ServiceMonitor', 'PodMonitor']) {
    const monitor = objectOf(kind, kind === 'PodMonitor' ? 'greeter-client' : 'greeter');
    expect(JSON.stringify(monitor)).toContain(`"path":"${metricsPath}"`);
  }
});

test('claims are those of a template, whose class exists', () => {
  const claims = workloads.flatMap(({ workload }) => workload.spec.template.spec.resourceClaims ?? []);
  expect(claims.map((claim) => claim.resourceClaimTemplateName)).toEqual(['greeter-nic']);
  const template = JSON.stringify(objectOf('ResourceClaimTemplate', 'greeter-nic'));
  expect(template).toContain('"deviceClassName":"rdma"');
  objectOf('DeviceClass', 'rdma');
});

test('the autoscaler asks for the metric that the adapter makes of one of ours', async () => {
  const { rules } = part('adapter.yaml') as {
    rules: { custom: { seriesQuery: string; name: { as: string }; metricsQuery: string }[] };
  };
  const [rule] = rules.custom;
  expect(JSON.stringify(objectOf('HorizontalPodAutoscaler'))).toContain(
    `"metric":{"name":"${rule!.name.as}"}`,
  );
  const { labels, counters } = await exported();
  const [series] = parsed(rule!.seriesQuery).selectors;
  expect(labels.has(series!.metric)).toBe(true);
  expect(counters).toContain(series!.metric);
  const query = rule!.metricsQuery
    .replace('<<.GroupBy>>', 'pod')
    .replace('<<.Series>>', series!.metric)
    .replace('<<.LabelMatchers>>', 'namespace="default"');
  expect(parsed(query).selectors).toEqual([{ metric: series!.metric, labels: ['namespace'], rated: true }]);
});
