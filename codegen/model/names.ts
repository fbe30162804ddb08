/**
 * Chooses TypeScript names for names in .proto files. Names in .proto files cannot contain `$`, so a name
 * with a `$` never clashes with a declared name. All clashes are resolved in this way.
 */

import { keyOf } from '../../runtime/codec/fields.ts';

/**
 * Words that cannot name a const or an interface, and the globals that generated code itself uses
 * (test/codegen/globals.test.ts looks for them here).
 */
const taken = new Set(
  `abstract any arguments as asserts async await bigint boolean break case catch class const constructor continue debugger declare default
  delete do else enum eval export extends false finally for function if implements import in infer instanceof interface is keyof let module
  namespace never new null number object of package private protected public readonly require return satisfies set static string super
  switch symbol this throw true try type typeof undefined unique unknown var void while with yield
  AsyncIterable Number Partial Promise Readonly Record String Uint8Array
  Int8Array Int16Array Uint16Array Int32Array Uint32Array BigInt64Array BigUint64Array Float32Array Float64Array`.split(
    /\s+/,
  ),
);

/**
 * Returns whether a property's name is valid for a variable. Names with capitals are excluded, because
 * variables must not hide types and globals.
 */
export function isVariable(key: string): boolean {
  return /^[a-z_]\w*$/.test(key) && !taken.has(key);
}

/** Properties that every object inherits. An absent field of such a name would not appear absent. */
const inherited = new Set(Object.getOwnPropertyNames(Object.prototype));

/** Returns the property name for a field or oneof. */
export function propertyName(name: string): string {
  const camel = keyOf(name) || '$';
  return inherited.has(camel) ? `${camel}$` : /^\d/.test(camel) ? `$${camel}` : camel;
}

/** Returns the property name for a method. A client with a method `then` would be treated as a promise. */
export function methodName(name: string): string {
  const key = propertyName(name);
  return key === 'then' ? 'then$' : key;
}

/**
 * Returns unique keys for the names of one object. If two names get the same key, the name that is written so
 * in the .proto keeps it, otherwise the first name. Each other name gets its own name with a `$`, so that its
 * key depends only on itself.
 */
export function keysFor(
  names: readonly string[],
  keyFor: (name: string) => string,
): ReadonlyMap<string, string> {
  const owners = new Map<string, string>();
  for (const name of names) {
    const key = keyFor(name);
    if (keyOf(name) === name || !owners.has(key)) owners.set(key, name);
  }
  return new Map(
    names.map((name) => {
      const key = keyFor(name);
      return [name, owners.get(key) === name ? key : `${name}$`];
    }),
  );
}

/** Returns the name of the const with the descriptor of a file. */
export function descriptorName(path: string): string {
  return `file_${path.replace(/\W/g, '_')}`;
}

/** Chooses the names of one file. Each name is used only once. */
export class Identifiers {
  readonly #used: Set<string>;

  /** `more` are names already used by the file. */
  constructor(more: readonly string[]) {
    this.#used = new Set([...taken, ...more]);
  }

  /**
   * Names of declared elements are chosen first: `['Order', 'Item']` becomes `Order_Item`, or `Order$Item`
   * when `Order_Item` is taken.
   */
  declare(path: readonly string[]): string {
    const plain = path.join('_');
    return this.#take(plain, path.length > 1 ? path.join('$') : `${plain}$`);
  }

  /** Names derived from them are chosen later: `FooInit`, or `Foo$Init` when a message FooInit exists. */
  derive(identifier: string, suffix: string): string {
    return this.#take(`${identifier}${suffix}`, `${identifier}$${suffix}`);
  }

  #take(wanted: string, otherwise: string): string {
    let name = this.#used.has(wanted) ? otherwise : wanted;
    while (this.#used.has(name)) name += '$';
    this.#used.add(name);
    return name;
  }
}
