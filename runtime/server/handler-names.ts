/**
 * Warns of names in a handler object that are not methods of the service. Such names are mostly typing
 * errors, and the intended methods would silently answer UNIMPLEMENTED. TypeScript finds such errors only in
 * object literals, and JavaScript does not find them at all. Runs once, when handlers are added to a server.
 */
import type { ServiceDefinition } from '../codec/types.ts';
import { slipOf } from '../core/nearest.ts';
import type { Warn } from '../core/warnings.ts';

/** Returns the names of functions in an object and in its classes, without running getters. */
function functionsOf(object: object): Set<string> {
  const names = new Set<string>();
  for (let at: object | null = object; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at))
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(at)))
      if (typeof value === 'function' && name !== 'constructor') names.add(name);
  return names;
}

/**
 * Warns of unknown names in `handlers`. A name that resembles a method without a handler is always reported.
 * Other functions count as helpers when `handlers` is an instance of a class or has handlers for all methods;
 * otherwise every unknown name is reported.
 */
export function warnOfNames(service: ServiceDefinition, handlers: object, warn: Warn): void {
  const given = functionsOf(handlers);
  const methods = Object.keys(service.methods);
  const missing = methods.filter((name) => !given.has(name));
  if (missing.length === 0) return;
  const prototype: unknown = Object.getPrototypeOf(handlers);
  const plain = prototype === Object.prototype || prototype === null;
  for (const name of given) {
    if (methods.includes(name)) continue;
    const meant = slipOf(name, missing);
    if (meant === undefined && !plain) continue;
    const rest =
      meant === undefined
        ? `methods without a handler are ${missing.slice(0, 10).join(', ')}`
        : `did you mean ${meant}?`;
    warn(`${service.fullName}: a handler is called ${name}, and there is no such method; ${rest}`);
  }
}
