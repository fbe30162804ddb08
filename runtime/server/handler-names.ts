/**
 * Names in an object of handlers that are no methods: mostly slips, and their methods would answer
 * UNIMPLEMENTED without a word. TypeScript finds them in what is written in place, and nothing in JavaScript.
 * Said once, when handlers are given to a server.
 */
import type { ServiceDefinition } from '../codec/types.ts';
import { slipOf } from '../core/nearest.ts';
import type { Warn } from '../core/warnings.ts';

/** Names of functions in an object and in its classes. No getter is run. */
function functionsOf(object: object): Set<string> {
  const names = new Set<string>();
  for (let at: object | null = object; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at))
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(at)))
      if (typeof value === 'function' && name !== 'constructor') names.add(name);
  return names;
}

/**
 * In a class, or beside handlers of all methods, other functions are helpers; elsewhere an unknown name is
 * told of, and one that looks like a method without a handler always is.
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
