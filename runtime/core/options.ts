/**
 * Checks options given by the user and fills in defaults. Every name must be known, and every value must be
 * in its range. This file is used when a server, channel or context is made.
 */

import { isUint8Array } from 'node:util/types';
import { disown } from '../codec/disown.ts';
import { callSlots, slotsPerStream } from '../limits.ts';
import { meantInstead } from './nearest.ts';

export interface Range {
  /** Undefined when the default is computed at the time of use. */
  readonly default: number | undefined;
  readonly min: number;
  readonly max: number;
}

/** The check of each option, by its name. */
export type OptionRule =
  /** An integer. `hint` explains how to write such a number; the error text shows it behind the range. */
  | { readonly kind: 'integer'; readonly range: Range; readonly hint?: string }
  /** A number that may have a fraction. */
  | { readonly kind: 'number'; readonly range: Range }
  /** A time in ms that may have a fraction. The checked value is -1 when the option was not given. */
  | { readonly kind: 'time' }
  | { readonly kind: 'text'; readonly default: string; readonly maxBytes: number }
  | { readonly kind: 'choice'; readonly values: readonly string[]; readonly default: string }
  /** One of `values`, the `default`, or a list of `values`. */
  | { readonly kind: 'choices'; readonly values: readonly string[]; readonly default: string }
  /** An integer or a list of integers. The checked value is always a list. */
  | { readonly kind: 'integers'; readonly range: Range }
  /** A text or a list of texts. The checked value is always a list. */
  | { readonly kind: 'texts'; readonly maxBytes: number }
  | { readonly kind: 'boolean'; readonly default?: boolean }
  /** PEM data as a text or as bytes. */
  | { readonly kind: 'pem' }
  /** A PEM value or a list of them. */
  | { readonly kind: 'pems' }
  /** An object that is checked by the code that uses it, or a function that returns such an object. */
  | { readonly kind: 'source' }
  /** An object that is checked by the code that uses it, or the path of a file. */
  | { readonly kind: 'config' }
  | { readonly kind: 'function' }
  /** A list of functions. The default is an empty list. */
  | { readonly kind: 'functions' }
  /** An object with options of its own. */
  | { readonly kind: 'options'; readonly rules: OptionRules };
export type OptionRules = Readonly<Record<string, OptionRule>>;

/**
 * Returns the value when it is a valid time: a finite number of at least 0. A time of 0 means that no time is
 * left.
 */
export function checkedTimeMs(where: string, value: unknown): number {
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) {
    disown(value);
    throw new RangeError(
      `${where}: ${String(value)} is not a time in ms; give a finite number of at least 0`,
    );
  }
  return value;
}

/**
 * Returns the checked value. An object with options is returned with its defaults. Throws a TypeError or
 * RangeError that begins with `where`.
 */
export function checkedValue(where: string, rule: OptionRule, value: unknown): unknown {
  switch (rule.kind) {
    case 'integer': {
      const { min, max } = rule.range;
      if (!Number.isInteger(value) || (value as number) < min || (value as number) > max) {
        disown(value);
        const range = `an integer from ${min} to ${max}${rule.hint === undefined ? '' : ` ${rule.hint}`}`;
        // The error text quotes a string, because a string such as `'4096'` would otherwise look like a
        // number in the range.
        if (typeof value === 'string')
          throw new RangeError(`${where}: '${value}' is a string, not a number; give ${range}`);
        throw new RangeError(`${where}: ${String(value)} is not ${range}`);
      }
      return value;
    }
    case 'number': {
      const { min, max } = rule.range;
      if (typeof value !== 'number' || !(value >= min && value <= max)) {
        disown(value);
        throw new RangeError(`${where}: ${String(value)} is not a number from ${min} to ${max}`);
      }
      return value;
    }
    case 'time':
      return checkedTimeMs(where, value);
    case 'text':
      if (typeof value !== 'string' || Buffer.byteLength(value) > rule.maxBytes) {
        throw new TypeError(`${where}: must be a string of at most ${rule.maxBytes} bytes`);
      }
      return value;
    case 'choice':
      if (typeof value !== 'string' || !rule.values.includes(value)) {
        throw new RangeError(
          `${where}: ${String(value)} is not allowed; use one of ${rule.values.join(', ')}`,
        );
      }
      return value;
    case 'integers':
      return listOf(where, value, { kind: 'integer', range: rule.range });
    case 'texts':
      return listOf(where, value, { kind: 'text', default: '', maxBytes: rule.maxBytes });
    case 'boolean':
      if (typeof value !== 'boolean') throw new TypeError(`${where}: must be true or false`);
      return value;
    case 'pem':
      if (typeof value !== 'string' && !isUint8Array(value))
        throw new TypeError(`${where}: must be PEM, as a string or bytes`);
      return value;
    case 'pems':
      for (const each of Array.isArray(value) ? (value as unknown[]) : [value])
        checkedValue(where, { kind: 'pem' }, each);
      return value;
    case 'source':
      if ((typeof value !== 'object' || value === null) && typeof value !== 'function')
        throw new TypeError(`${where}: must be an object, or a function that returns one`);
      // A list or a Map would be treated as an object without the intended names.
      if (Symbol.iterator in value)
        throw new TypeError(
          `${where}: must be an object with names, such as { name: … }, or a function, but is of type ${kindOf(value)}`,
        );
      return value;
    case 'config':
      if (typeof value !== 'string' && (typeof value !== 'object' || value === null))
        throw new TypeError(`${where}: must be an object, or the path of a file`);
      return value;
    case 'function':
      if (typeof value !== 'function') throw new TypeError(`${where}: must be a function`);
      return value;
    case 'functions':
      if (!Array.isArray(value) || value.some((each) => typeof each !== 'function')) {
        throw new TypeError(`${where}: must be a list of functions`);
      }
      return [...value];
    case 'choices':
      return checkedChoices(where, rule.values, rule.default, value);
    case 'options':
      return checkedOptions(where, value as object, rule.rules);
  }
}

function listOf(where: string, value: unknown, rule: OptionRule): unknown[] {
  return (Array.isArray(value) ? value : [value]).map((each: unknown) => checkedValue(where, rule, each));
}

function checkedChoices(where: string, values: readonly string[], default_: string, value: unknown): unknown {
  if (value === default_) return value;
  const list: unknown[] = Array.isArray(value) ? value : [value];
  const wrong = list.find((each) => typeof each !== 'string' || !values.includes(each));
  if (wrong !== undefined || list.length === 0 || new Set(list).size !== list.length) {
    const what = wrong === undefined ? JSON.stringify(value) : String(wrong);
    throw new RangeError(
      `${where}: ${what} is not allowed; use '${default_}', or one or more of ${values.join(', ')}, each at most once`,
    );
  }
  return value;
}

function byDefault(rule: OptionRule): unknown {
  if (rule.kind === 'integer' || rule.kind === 'number') return rule.range.default;
  if (rule.kind === 'text' || rule.kind === 'choice' || rule.kind === 'choices' || rule.kind === 'boolean')
    return rule.default;
  if (rule.kind === 'options') return checkedOptions('', {}, rule.rules);
  if (rule.kind === 'functions') return [];
  return rule.kind === 'time' ? -1 : undefined;
}

/** Returns the class name of a value, such as `Map` or `Array`. */
const kindOf = (value: object): string => Object.prototype.toString.call(value).slice('[object '.length, -1);

/** Throws for a list or a Map. They have no option names, so their content would silently be ignored. */
function checkObject(what: string, given: unknown): asserts given is object {
  const isObject = typeof given === 'object' && given !== null;
  if (isObject && !(Symbol.iterator in given)) return;
  disown(given);
  const shown = isObject ? kindOf(given) : String(given);
  throw new TypeError(`${what}: must be an object with options, but is ${shown}`);
}

/** The options of each function, for errors about an option given to the wrong function. */
const owners = new Map<string, OptionRules>();

/** Registers `rules` as the options of the function `owner`. */
export function ownedBy(owner: string, rules: OptionRules): OptionRules {
  owners.set(owner, rules);
  return rules;
}

/**
 * Returns a text that names the functions other than `what` that have this option, or an empty text when no
 * function has it.
 */
function ownersOf(what: string, name: string): string {
  const having = [...owners].filter(([owner, rules]) => owner !== what && Object.hasOwn(rules, name));
  if (having.length === 0) return '';
  // The functions are ordered by name, so that their order does not depend on which module was loaded first.
  const functions = having.map(([owner]) => `${owner}()`).toSorted();
  return `; it is an option of ${functions.join(' and ')}`;
}

/**
 * Throws for names that are not in `known`. The error names the function that has the option, or the most
 * similar name.
 */
export function checkNames(what: string, given: unknown, known: readonly string[]): void {
  checkObject(what, given);
  for (const name of Object.keys(given)) {
    if (known.includes(name)) continue;
    throw new TypeError(
      `${what}: there is no option ${name}${ownersOf(what, name) || meantInstead(name, known)}`,
    );
  }
}

/**
 * Throws when calls and streams together need too many call slots. A call slot has 12 bits on the wire, and
 * the slots of streams follow the slots of unary calls.
 */
export function checkCallSlots(what: string, options: { inflightMax: number; streamsMax: number }): void {
  const { inflightMax, streamsMax } = options;
  if (inflightMax + slotsPerStream * streamsMax <= callSlots) return;
  throw new RangeError(
    `${what}: inflightMax (${inflightMax}) and ${slotsPerStream} times streamsMax (${streamsMax}) are more than ${callSlots} together; lower one of them`,
  );
}

/** Throws for an option that belongs inside a nested object but was given beside that object. */
function checkLevel(what: string, given: object, rules: OptionRules): void {
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(rules, name)) continue;
    for (const [outer, rule] of Object.entries(rules))
      if (rule.kind === 'options' && Object.hasOwn(rule.rules, name))
        throw new TypeError(
          `${what}: ${name} belongs inside the option ${outer}: write ${outer}: { ${name}: … }`,
        );
  }
}

/**
 * Returns the options of `given` with their defaults, as plain values by name. Throws a TypeError or
 * RangeError that names the option.
 */
export function checkedOptions<T>(what: string, given: object | undefined, rules: OptionRules): T {
  const options = given ?? {};
  checkObject(what, options);
  checkLevel(what, options, rules);
  checkNames(what, options, Object.keys(rules));
  const result: Record<string, unknown> = {};
  for (const [name, rule] of Object.entries(rules)) {
    const value = (options as Record<string, unknown>)[name];
    result[name] = value === undefined ? byDefault(rule) : checkedValue(`${what}: ${name}`, rule, value);
  }
  return result as T;
}
