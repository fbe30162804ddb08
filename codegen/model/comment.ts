/** Comments of the .proto as people wrote them, without what marks them as comments. Called while the model is built. */
import type { SchemaFile } from '../link/schema.ts';

/** The comment of the element at that path: in front of it, else behind it. */
export function commentOf(file: SchemaFile, path: string): string {
  const location = file.locations.get(path);
  const text = location?.leading ?? location?.trailing;
  if (text === undefined) return '';
  const lines = text
    .replace(/^\*+/, '')
    .split('\n')
    .map((line) => line.replace(/^ /, '').trimEnd());
  while (lines[0] === '') lines.shift();
  while (lines.at(-1) === '') lines.pop();
  return lines.join('\n');
}
