/**
 * Features: the differences between proto2, proto3 and the editions, as settings that a file, message, field
 * or enum may change. They are resolved from the outermost element to the innermost element. This file is
 * used while the model is built; later code does not depend on a file's syntax.
 */
import type { OptionTree } from '../options/tree.ts';

export interface Features {
  readonly presence: 'explicit' | 'implicit' | 'required';
  readonly packed: boolean;
  /** Messages are encoded as groups. */
  readonly delimited: boolean;
  readonly utf8: boolean;
}

const proto2: Features = { presence: 'explicit', packed: false, delimited: false, utf8: false };
const proto3: Features = { presence: 'implicit', packed: true, delimited: false, utf8: true };
/** All editions have the same defaults so far. */
const edition: Features = { presence: 'explicit', packed: true, delimited: false, utf8: true };

/** Returns the default features of a syntax. `syntax` has the form that it has in descriptors. */
export function syntaxFeatures(syntax: string | undefined): Features {
  return syntax === 'editions' ? edition : syntax === 'proto3' ? proto3 : proto2;
}

const presences = [undefined, 'explicit', 'implicit', 'required'] as const;

/** Field number of `features` in each kind of options. */
const featuresField = { FileOptions: 50, MessageOptions: 12, FieldOptions: 21, OneofOptions: 1 } as const;

/** Applies the features in `options`. The numbers are the field numbers of google.protobuf.FeatureSet. */
export function withFeatures(
  outer: Features,
  type: keyof typeof featuresField,
  options: OptionTree | undefined,
): Features {
  const set = options?.tree(featuresField[type]);
  if (set === undefined) return outer;
  const encoding = set.integer(3);
  const utf8 = set.integer(4);
  const message = set.integer(5);
  return {
    presence: presences[set.integer(1)] ?? outer.presence,
    packed: encoding === 0 ? outer.packed : encoding === 1,
    delimited: message === 0 ? outer.delimited : message === 2,
    utf8: utf8 === 0 ? outer.utf8 : utf8 === 2,
  };
}
