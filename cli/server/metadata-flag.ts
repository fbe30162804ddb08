/**
 * The flag `-m KEY=VALUE` of the commands that make calls.
 */
import { InvalidArgumentError } from '#commander';
import type { MetadataValue } from '../../runtime/core/metadata.ts';

/** Bytes are given as base64, which is also how they are printed. */
export function metadataPair(text: string, previous: [string, MetadataValue][]): [string, MetadataValue][] {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('Give key=value.');
  const [key, value] = [text.slice(0, at), text.slice(at + 1)];
  if (!key.toLowerCase().endsWith('-bin')) return [...previous, [key, value]];
  if (!/^[\w+/-]*={0,2}$/.test(value)) throw new InvalidArgumentError('A key in -bin takes base64.');
  return [...previous, [key, Buffer.from(value, 'base64')]];
}
