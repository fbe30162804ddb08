/**
 * Metadata of a client's defaults, which is the same for all calls. It is copied when the client is created,
 * and encoded once. Clients use this file, and so does code that reads the options of a call.
 */
import { Metadata, type MetadataInit } from '../../core/metadata.ts';
import { encodeMetadata } from '../../core/metadata-wire.ts';

/** The wire form of each constant Metadata, or null before it has been encoded. */
const constants = new WeakMap<Metadata, Uint8Array | null>();

/** Returns a copy of the given metadata that is never changed. Throws a TypeError for an invalid value. */
export function constantMetadata(given: MetadataInit): Metadata {
  const copy = new Metadata();
  for (const [key, value] of new Metadata(given))
    copy.append(key, typeof value === 'string' ? value : value.slice());
  constants.set(copy, null);
  return copy;
}

/**
 * Returns the wire form, or undefined for empty metadata. Throws as `encodeMetadata` does, again for each
 * call.
 */
export function metadataBytes(given: MetadataInit): Uint8Array | undefined {
  if (!(given instanceof Metadata)) {
    const made = new Metadata(given);
    return made.size === 0 ? undefined : encodeMetadata(made);
  }
  if (given.size === 0) return undefined;
  const known = constants.get(given);
  if (known instanceof Uint8Array) return known;
  const bytes = encodeMetadata(given);
  // A copy is kept, because the original shares its memory with wire forms that are needed only for a short
  // time.
  if (known === null) constants.set(given, bytes.slice());
  return bytes;
}
