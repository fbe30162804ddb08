/**
 * A base class for private fields on objects that were created elsewhere. Other code does not see such a
 * field as a property or in a copy. A WeakMap would cost eight times as much, and more again in each garbage
 * collection.
 */

/**
 * The constructor returns the given object, so that the private fields of a subclass are added to that
 * object.
 */
export const Itself = function itself(object: object): object {
  return object;
} as unknown as new (
  object: object,
) => object;
