/**
 * Returns comments of the .proto as written, without comment marks. It is called while the model is built.
 */
import type { SchemaFile } from '../link/schema.ts';

/**
 * Returns the comments of the element at that path: the comment in front of it and, after an empty line, the
 * comment behind it.
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
