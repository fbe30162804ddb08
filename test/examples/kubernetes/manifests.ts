/** Reads the manifests of examples/kubernetes, for their tests. */
import { parseAllDocuments } from 'yaml';
import { projectFiles, read } from '../../house/tree.ts';

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec?: unknown;
}

export interface Container {
  readonly name: string;
  readonly args: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly resources: {
    readonly requests: Readonly<Record<string, string>>;
    readonly limits: Readonly<Record<string, string>>;
  };
  readonly securityContext: { readonly capabilities: { readonly add?: readonly string[] } };
  readonly lifecycle?: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
}

export interface Workload {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly template: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> };
      readonly spec: {
        readonly serviceAccountName: string;
        readonly terminationGracePeriodSeconds: number;
        readonly resourceClaims?: readonly { readonly resourceClaimTemplateName: string }[];
        readonly securityContext: { readonly runAsUser: number };
        readonly containers: readonly Container[];
      };
    };
  };
}

const folder = 'examples/kubernetes/';
/** Blocks that are no object of the cluster: a patch, and values of a chart. */
const parts = new Set(['hugepages.yaml', 'adapter.yaml']);

/**
 * Returns the contents of the YAML documents of a file. Throws for a duplicate key and for text that is not
 * YAML.
 */
function documents(text: string): unknown[] {
  return parseAllDocuments(text).map((document) => {
    const [problem] = [...document.errors, ...document.warnings];
    if (problem !== undefined) throw problem;
    return document.toJS() as unknown;
  });
}

export const part = (name: string): unknown => documents(read(`${folder}${name}`))[0];

/** All objects, with the file of each. */
export const manifests = projectFiles()
  .filter((path) => path.startsWith(folder) && path.endsWith('.yaml'))
  .map((path) => path.slice(folder.length))
  .filter((file) => !parts.has(file))
  .flatMap((file) => (documents(read(`${folder}${file}`)) as Manifest[]).map((object) => ({ file, object })));

/** The objects that pages of docs/ show as a whole. Other blocks of YAML are parts of an object. */
export const shown = projectFiles()
  .filter((path) => /^docs\/.*\.md$/.test(path))
  .flatMap((file) =>
    [...read(file).matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(([, text]) => ({ file, text: text! })),
  )
  .filter(({ text }) => /^apiVersion: /m.test(text))
  .flatMap(({ file, text }) => (documents(text) as Manifest[]).map((object) => ({ file, object })));

/** The servers of the variants and the client. */
export const workloads = manifests
  .filter(({ object }) => ['Deployment', 'StatefulSet'].includes(object.kind))
  .map(({ file, object }) => ({ file, workload: object as unknown as Workload }));

/** The servers alone. */
export const servers = workloads.filter(({ workload }) => workload.metadata.name === 'greeter');

/** Returns the only object of a kind and a name. */
export function objectOf<T>(kind: string, name = 'greeter'): T {
  const found = manifests.filter(({ object }) => object.kind === kind && object.metadata.name === name);
  if (found.length !== 1) throw new Error(`${found.length} objects ${kind} ${name}`);
  return found[0]!.object as T;
}
