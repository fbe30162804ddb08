/**
 * Decides which types other files may use, by `local` and `export` of edition 2024. check.ts calls it for
 * each use of a type.
 */
import { type FeatureScope, visibilities } from './features.ts';
import type { DeclaredKind } from './schema.ts';

const local = 1;

/**
 * Returns the reason why a type is local to its file, or undefined when it is not local. `features` are the
 * features of the type's file.
 */
export function whyLocal(
  { descriptor: { visibility = 0 }, path }: DeclaredKind<'message' | 'enum'>,
  features: FeatureScope,
): string | undefined {
  if (visibility === local) return 'it is local';
  if (visibility !== 0) return undefined;
  const rule = features.get('visibility');
  // A path consists of a list and an index for each level.
  const nested = path.split(',').length > 2;
  if (rule === visibilities.exportTopLevel && nested)
    return 'types inside of others are local there unless they say export';
  return rule === visibilities.localAll || rule === visibilities.strict
    ? 'types are local there unless they say export'
    : undefined;
}
