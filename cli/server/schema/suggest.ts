/**
 * Suggests which name an unknown name may have meant. The commands that take names use this file.
 */
import type { DescMethod, FileRegistry } from '#protobuf';
import { suggestion } from '../../../codegen/diagnostic.ts';
import { namesIn } from './registry.ts';
import type { Schema } from './schema.ts';

const listedMax = 8;
/** Maximum number of services that are searched for names of messages. */
const servicesMax = 50;

const lastOf = (name: string): string => name.slice(name.lastIndexOf('.') + 1);

/** Returns whether a service is one of those that servers add to their own services, such as reflection. */
const ofEverybody = (name: string): boolean => /^grpc\.(health|reflection)\./.test(name);

/** Sorts the names so that the server's own services come first. */
const ownFirst = (names: readonly string[]): string[] =>
  [...names].sort((a, b) => Number(ofEverybody(a)) - Number(ofEverybody(b)));

/**
 * Returns `; did you mean X?`, or a list of names if no name is similar. A name without its package, or with
 * a different package, is similar to the full name.
 */
export function suggestionOrList(unknown: string, candidates: readonly string[]): string {
  const meant = likely(unknown, candidates);
  if (meant !== '') return meant;
  if (candidates.length === 0) return '';
  const rest = candidates.length > listedMax ? ', …' : '';
  return `; available: ${ownFirst(candidates).slice(0, listedMax).join(', ')}${rest}`;
}

function likely(unknown: string, candidates: readonly string[]): string {
  const last = lastOf(unknown).toLowerCase();
  const sameLast = candidates.filter((each) => lastOf(each).toLowerCase() === last);
  const whole = suggestion(unknown, candidates);
  if (whole !== '' || sameLast.length === 0) {
    if (whole !== '' || unknown.includes('.')) return whole;
    // The package may be missing in addition to a wrong letter.
    const short = suggestion(unknown, candidates.map(lastOf));
    const meant = candidates.find((each) => short === `; did you mean ${lastOf(each)}?`);
    return meant === undefined ? '' : `; did you mean ${meant}?`;
  }
  return `; did you mean ${sameLast[0]}?`;
}

/** Returns the names of a service's methods, or undefined when it is not a service. */
async function methodsOf(schema: Schema, service: string): Promise<string[] | undefined> {
  return (await schema.declaring(service))?.getService(service)?.methods.map(({ name }) => name);
}

/** A method, and the declarations around it. */
export interface FoundMethod {
  readonly method: DescMethod;
  readonly registry: FileRegistry;
}

/**
 * Resolves to the method with this name. `path` has the form Service/Method. Throws an Error that names the
 * wrong part of the name, and the name that was probably meant.
 */
export async function findMethod(schema: Schema, path: string): Promise<FoundMethod> {
  const slash = path.indexOf('/');
  const service = path.slice(0, Math.max(0, slash));
  const name = path.slice(slash + 1);
  if (slash > 0) {
    const registry = await schema.declaring(`${service}.${name}`, 'extensions');
    const method = registry?.getService(service)?.methods.find((each) => each.name === name);
    if (registry !== undefined && method !== undefined) return { method, registry };
  } else await refuseWithoutSlash(schema, path);
  const methods = await methodsOf(schema, service);
  if (methods === undefined)
    throw new Error(
      `${has(schema, `no service ${service}`)}${suggestionOrList(service, await schema.services())}`,
    );
  throw new Error(`${service} has no method ${name}${suggestionOrList(name, methods)}`);
}

const has = ({ owner }: Schema, what: string): string =>
  `${owner} ${owner.endsWith('s') ? 'have' : 'has'} ${what}`;

async function refuseWithoutSlash(schema: Schema, path: string): Promise<never> {
  const dot = path.lastIndexOf('.');
  const whole = await methodsOf(schema, path);
  if (whole !== undefined) {
    const methods = whole.map((name) => `${path}/${name}`);
    throw new Error(`${path} is a service; give Service/Method${suggestionOrList('', methods)}`);
  }
  const service = path.slice(0, Math.max(0, dot));
  if ((await methodsOf(schema, service))?.includes(path.slice(dot + 1)) === true)
    throw new Error(`${path} is not a method; did you mean ${service}/${path.slice(dot + 1)}?`);
  const names = (await schema.services()).map((name) => `${name}/…`);
  throw new Error(`${path} is not a method; give Service/Method${suggestionOrList('', names)}`);
}

/**
 * Returns the names that can be described: services, their methods, and the other declarations in their
 * files.
 */
export async function declaredNames(schema: Schema): Promise<string[]> {
  const names = new Set<string>();
  for (const service of (await schema.services()).slice(0, servicesMax)) {
    const registry = await schema.declaring(service);
    for (const name of registry === undefined ? [] : namesIn(registry)) names.add(name);
  }
  return [...names];
}
