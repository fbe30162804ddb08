/**
 * The parts of a document that tests look at: code by chapter, tables by the comment above them. Used by the
 * tests of this folder.
 */
import { read } from '../house/tree.ts';

export interface Chapter {
  readonly title: string;
  /** All TypeScript of the chapter: its blocks are one program. */
  readonly code: string;
  readonly run: boolean;
}

/** Chapters (`##`) that have TypeScript, in order. One is run when its first block is marked `ts run`. */
export function chaptersOf(markdown: string): Chapter[] {
  return markdown
    .split(/^## /m)
    .slice(1)
    .map((text) => {
      const blocks = [...text.matchAll(/^```(ts|ts run)\n([\s\S]*?)^```$/gm)];
      return {
        title: text.slice(0, text.indexOf('\n')),
        code: blocks.map((block) => block[2]).join('\n'),
        run: blocks[0]?.[1] === 'ts run',
      };
    })
    .filter(({ code }) => code !== '');
}

/** Rows of the table below `<!-- mark -->`, as cells, without its head. */
export function tableOf(markdown: string, mark: string): string[][] {
  const [, table] = new RegExp(`^<!-- ${mark} -->\\n((?:\\|.*\\n)+)`, 'm').exec(markdown) ?? [];
  if (table === undefined) throw new Error(`there is no table marked ${mark}`);
  const rows = table.trimEnd().split('\n').slice(2);
  return rows.map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

/** What stands in backticks in a cell. */
export function namesIn(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map((name) => name[1]!);
}

export const guide: string = read('docs/GUIDE.md');
export const readme: string = read('README.md');
