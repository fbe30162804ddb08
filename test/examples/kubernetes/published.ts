/**
 * Compares manifests with the published schemas of Kubernetes and of the Prometheus operator. This file uses
 * the packages kubernetes-models and @kubernetes-models/prometheus-operator, which are generated from these
 * schemas. The validators of these packages check values and required fields. The types of these packages
 * also reject unknown fields.
 */
import { compiled } from '../compiled.ts';
import type { Manifest } from './manifests.ts';

/**
 * Returns the module with the model of this object only, because the modules of whole groups take seconds to
 * compile.
 */
function moduleOf({ apiVersion, kind }: Manifest): string {
  const operator = apiVersion.startsWith('monitoring.coreos.com/');
  return `${operator ? '@kubernetes-models/prometheus-operator' : 'kubernetes-models'}/${apiVersion}/${kind}`;
}

type Models = Readonly<Record<string, (new (data: object) => { validate(): void }) | undefined>>;

/** Returns the objections of the schemas to the values of an object, or '' when there are none. */
export async function invalid(object: Manifest): Promise<string> {
  const models = (await import(moduleOf(object)).catch(() => ({}))) as Models;
  const Kind = models[object.kind];
  if (Kind === undefined) return `${object.apiVersion} has no ${object.kind}`;
  try {
    new Kind(object).validate();
    return '';
  } catch (error) {
    return (error as Error).message;
  }
}

/** Checks each object as a literal of its type, and returns the compiler's errors ('' for none). */
export function mistyped(objects: readonly Manifest[]): string[] {
  return compiled(
    objects.map((object) => {
      const type = `import('${moduleOf(object)}').I${object.kind}`;
      return `export const object: ${type} = ${JSON.stringify(object)};`;
    }),
  );
}
