/**
 * Metadata on its way into a call, and that of a client's defaults, which is the same for all calls: it is
 * copied when the client is made and encoded once. Used by clients and by whatever reads the options of a
 * call.
 */
import { Metadata, type MetadataInit } from '../../core/metadata.ts';
import { encodeMetadata } from '../../core/metadata-wire.ts';

/** Null: not encoded yet. */
const constants = new WeakMap<Metadata, Uint8Array | null>();

/** A copy that nobody changes any more. Throws a TypeError for what is no metadata. */
export function constantMetadata(given: MetadataInit): Metadata {
  const copy = new Metadata();
  for (const [key, value] of new Metadata(given))
    copy.append(key, typeof value === 'string' ? value : value.slice());
  constants.set(copy, null);
  return copy;
}

/** As it travels, undefined for none. Throws as `encodeMetadata` does, in each call anew. */
export function metadataBytes(given: MetadataInit): Uint8Array | undefined {
  if (!(given instanceof Metadata)) {
    const made = new Metadata(given);
    return made.size === 0 ? undefined : encodeMetadata(made);
  }
  if (given.size === 0) return undefined;
  const known = constants.get(given);
  if (known instanceof Uint8Array) return known;
  const bytes = encodeMetadata(given);
  // A copy: the memory is shared with wire forms that are soon of no use, and this one stays.
  if (known === null) constants.set(given, bytes.slice());
  return bytes;
}
