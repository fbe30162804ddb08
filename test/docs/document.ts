/**
 * Reads the pages of docs/, and the parts of them that tests check: programs, and tables by the comment above
 * them. The tests of this folder use it. Every page under docs/ is read, so that a new page is tested without
 * being listed.
 */
import { projectFiles, read } from '../house/tree.ts';

export interface Page {
  /** The path relative to the root. */
  readonly path: string;
  readonly text: string;
}

export interface Program {
  readonly page: string;
  /** The heading above its first block. */
  readonly title: string;
  readonly code: string;
  readonly run: boolean;
}

export const pages: readonly Page[] = projectFiles()
  .filter((path) => /^docs\/.*\.md$/.test(path))
  .map((path) => ({ path, text: read(path) }));

/** The text of all pages, for strings that may be on any page. */
export const documents: string = pages.map(({ text }) => text).join('\n');

/** Returns the page at a path below docs/, without `.md`. */
export function pageOf(name: string): string {
  return read(`docs/${name}.md`);
}

/**
 * Matches a block of TypeScript with the words that may follow `ts`; docs/reference/generated-code.md and
 * generator.md have more such words.
 */
const BLOCK = /^```ts(?: (run|begin))?\n([\s\S]*?)^```$/gm;

/**
 * Returns the TypeScript programs of a page. A block marked `ts run` or `ts begin` begins a program, and so
 * does the first block of a page. A block without a mark continues the program above it. A program that
 * begins with `ts run` is run.
 */
export function programsOf({ path, text }: Page): Program[] {
  const programs: { title: string; blocks: string[]; run: boolean }[] = [];
  for (const block of text.matchAll(BLOCK)) {
    const [, mark, code = ''] = block;
    if (mark !== undefined || programs.length === 0) {
      const headings = text.slice(0, block.index).match(/^#+ .*$/gm) ?? [];
      const title = headings.at(-1)?.replace(/^#+ /, '') ?? '';
      programs.push({ title, blocks: [], run: mark === 'run' });
    }
    programs.at(-1)!.blocks.push(code);
  }
  return programs.map(({ title, blocks, run }) => ({ page: path, title, run, code: blocks.join('\n') }));
}

/** Returns the rows of all tables below `<!-- mark -->` as cells, without the heads of the tables. */
export function tableOf(markdown: string, mark: string): string[][] {
  const tables = [...markdown.matchAll(new RegExp(`^<!-- ${mark} -->\\n((?:\\|.*\\n)+)`, 'gm'))];
  if (tables.length === 0) throw new Error(`there is no table marked ${mark}`);
  const rows = tables.flatMap(([, table = '']) => table.trimEnd().split('\n').slice(2));
  return rows.map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

/**
 * Returns the texts in backticks in a cell. A text that contains backticks itself has two backticks on each
 * side.
 */
export function namesIn(cell: string): string[] {
  return [...cell.matchAll(/(`+)(.+?)\1(?!`)/g)].map((name) => name[2]!);
}
