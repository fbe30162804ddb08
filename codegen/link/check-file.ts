/**
 * Checks file options that an edition has removed. check.ts calls it for each file.
 */
import { decodeOptions } from '../options/tree.ts';
import { edition2024 } from './features.ts';
import type { Schema, SchemaFile } from './schema.ts';

/** Field numbers in google.protobuf.FileOptions. */
const javaMultipleFiles = 10;
const javaStringCheckUtf8 = 27;

export function fileFaults(schema: Schema, { descriptor }: SchemaFile): string[] {
  const { syntax, edition = 0, options } = descriptor;
  const faults: string[] = [];
  if (syntax !== 'editions') return faults;
  const set = decodeOptions(schema, 'FileOptions', options)?.values;
  if (set?.has(javaMultipleFiles) === true && edition >= edition2024)
    faults.push('edition 2024 has no java_multiple_files: it is what files do there');
  if (set?.has(javaStringCheckUtf8) === true)
    faults.push('editions have no java_string_check_utf8: write features.(pb.java).utf8_validation');
  return faults;
}
