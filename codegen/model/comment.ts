/**
 * Comments of the .proto as people wrote them, without what marks them as comments. Called while the model is
 * built.
 */
import type { SchemaFile } from '../link/schema.ts';

/**
 * The comments of the element at that path: the one in front of it, and behind an empty line the one that
 * follows it.
 */
export function commentOf(file: SchemaFile, path: string): string {
  const { leading = '', trailing = '' } = file.locations.get(path) ?? {};
  return [leading, trailing]
    .map(plainText)
    .filter((text) => text !== '')
    .join('\n\n');
}

function plainText(comment: string): string {
  const lines = comment
    .replace(/^\*+/, '')
    .split('\n')
    .map((line) => line.replace(/^ /, '').trimEnd());
  while (lines[0] === '') lines.shift();
  while (lines.at(-1) === '') lines.pop();
  return lines.join('\n');
}
