/**
 * The pages of docs/, and the parts of them that tests look at: programs, tables by the comment above them.
 * Used by the tests of this folder. Every page under docs/ is read, so a new page is tested without a list.
 */
import { projectFiles, read } from '../house/tree.ts';

export interface Page {
  /** Relative to the root. */
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

/** All pages, for what may stand on any of them. */
export const documents: string = pages.map(({ text }) => text).join('\n');

/** The page at a path below docs/, without `.md`. */
export function pageOf(name: string): string {
  return read(`docs/${name}.md`);
}

/**
 * What a block of TypeScript may say behind `ts`; docs/reference/generated-code.md and generator.md have
 * more.
 */
const BLOCK = /^```ts(?: (run|begin))?\n([\s\S]*?)^```$/gm;

/**
 * The TypeScript programs of a page. A block marked `ts run` or `ts begin` begins a program, and so does the
 * first block of a page; a block without a mark goes on with the program above it. One that begins with
 * `ts run` is run.
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

/** Rows of the tables below `<!-- mark -->`, as cells, without their heads; of all tables with that mark. */
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

/** What stands in backticks in a cell. Two backticks on each side are for a text that has some itself. */
export function namesIn(cell: string): string[] {
  return [...cell.matchAll(/(`+)(.+?)\1(?!`)/g)].map((name) => name[2]!);
}
