/**
 * Makes `instanceof` work across two copies of this package, for example an ESM copy and one inside a bundle.
 * The prototype of each marked class has a symbol that all copies share. The error classes use it, because
 * errors often reach code of another copy.
 */
const marked = new WeakMap<object, symbol>();

/**
 * Marks objects of `type` and its subclasses as `name`, and makes `instanceof` look for that mark. A subclass
 * inherits the mark but has none of its own, so `instanceof` a subclass recognises only its own objects. Call
 * it in the static block of `type`.
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
    return false; // A proxy can refuse to be inspected.
  }
}
