/**
 * Emits comments of the .proto as JSDoc.
 */
import type { Documented } from '../model/model.ts';

/** Makes a file's path, which may contain any character, fit on one line of a comment. */
export function inComment(path: string): string {
  return path.replaceAll('*/', '*\u200b/').replace(/[\n\r\u2028\u2029]/g, ' ');
}

/** Returns the text of a JSDoc block, or undefined when it would be empty. */
export function docText({ comment, deprecated }: Documented): string | undefined {
  const lines = comment === '' ? [] : comment.replaceAll('*/', '*\u200b/').split(/\r?\n/);
  if (deprecated && !/@deprecated\b/.test(comment)) lines.push('@deprecated');
  return lines.length === 0 ? undefined : lines.join('\n');
}

/** Returns the same block as indented source lines. */
export function docLines(documented: Documented, indent: string): string {
  const text = docText(documented);
  if (text === undefined) return '';
  const lines = text.split('\n');
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} *${line === '' ? '' : ` ${line}`}\n`).join('')}${indent} */\n`;
}
