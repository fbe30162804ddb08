/**
 * Classes that `instanceof` knows across two copies of this package, an ESM one and one inside of a bundle:
 * the prototype of each carries a mark that all copies have in common. Used by the error classes, whose
 * objects meet code of another copy wherever errors do.
 */
const marked = new WeakMap<object, symbol>();

/**
 * Marks objects of `type` and of what extends it as `name`, and has `instanceof` look for that. A subclass
 * inherits it, and has no mark of its own: only its own objects are of it. Called in the static block of
 * `type`.
 */
export function brand(type: abstract new (...args: never[]) => object, name: string): void {
  const mark = Symbol.for(`rdma-rpc.${name}`);
  marked.set(type, mark);
  Object.defineProperty(type.prototype, mark, { value: true });
  Object.defineProperty(type, Symbol.hasInstance, {
    value(this: object, value: unknown): boolean {
      return branded(this, value);
    },
  });
}

function branded(type: object, value: unknown): boolean {
  const mark = marked.get(type);
  if (mark === undefined) return Function.prototype[Symbol.hasInstance].call(type, value);
  try {
    return typeof value === 'object' && value !== null && mark in value;
  } catch {
    return false; // a proxy that refuses
  }
}
