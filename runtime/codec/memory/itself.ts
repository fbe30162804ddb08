/**
 * For private fields of objects that were made elsewhere: nobody else sees them, neither as a property nor in
 * a copy. A WeakMap costs eight times as much, and again in each garbage collection.
 */

/**
 * What `new` gives back is the object itself, so that a private field of a subclass becomes the object's own.
 */
export const Itself = function itself(object: object): object {
  return object;
} as unknown as new (
  object: object,
) => object;
