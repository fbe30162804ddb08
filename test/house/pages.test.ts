/**
 * Tests the pages of docs/ as a reader finds them. The pages are short and have a title and a first paragraph
 * about the page's purpose. They can be reached from the contents page, and their links and anchors lead
 * somewhere. Every page under docs/ is checked.
 */
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { exists, projectFiles, read } from './tree.ts';

const LINES_MAX = 300;
const CONTENTS = 'docs/README.md';

const pages = projectFiles().filter((path) => /^docs\/.*\.md$/.test(path));
/** Other documents lead to the pages, and to each other. */
const documents = projectFiles().filter((path) => path.endsWith('.md'));

/** Returns the text without code, whose lines may look like headings and links. */
function proseOf(path: string): string {
  return read(path).replace(/^```[\s\S]*?^```$/gm, '');
}

/**
 * Returns the anchors that GitHub and the site make of a document's headings, and the anchors that the
 * document declares itself.
 */
function anchorsOf(path: string): Set<string> {
  const prose = proseOf(path);
  const anchors = new Set([...prose.matchAll(/<a id="([^"]+)">/g)].map(([, id]) => id!));
  for (const [, heading = ''] of prose.matchAll(/^#{1,6} (.*)$/gm)) {
    const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const anchor = plain.replace(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-');
    let unique = anchor;
    for (let count = 1; anchors.has(unique); ++count) unique = `${anchor}-${count}`;
    anchors.add(unique);
  }
  return anchors;
}

/** Returns the relative links of a document: the file to which each leads, and its anchor. */
function linksOf(path: string): { to: string; anchor: string | undefined }[] {
  // Text in backticks is not a link.
  const prose = proseOf(path).replace(/(`+)(?:(?!\1).)+?\1/g, '');
  return [...prose.matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)].map(([, link = '']) => {
    const [file = '', anchor] = link.split('#');
    return { to: file === '' ? path : join(dirname(path), file), anchor };
  });
}

test('there are pages', () => {
  expect(pages.length).toBeGreaterThan(40);
  expect(pages).toContain(CONTENTS);
});

describe.each(pages)('%s', (path) => {
  test(`has at most ${LINES_MAX} lines`, () => {
    expect(read(path).trimEnd().split('\n').length).toBeLessThanOrEqual(LINES_MAX);
  });

  test('begins with a title and a paragraph with the purpose of the page', () => {
    const [title = '', blank, ...rest] = proseOf(path).split('\n');
    expect(title).toMatch(/^# \S/);
    expect(blank).toBe('');
    const paragraph = rest.join('\n').split('\n\n')[0]!;
    // A heading, a table, a list or a picture is not a sentence.
    expect(paragraph).not.toMatch(/^(#|\||[-*] |\d+\. |!|<)/);
    expect(paragraph.length).toBeGreaterThan(40);
    expect(paragraph).toMatch(/[.:]$/);
  });

  test('has one title, and headings that do not skip a level', () => {
    const levels = [...proseOf(path).matchAll(/^(#+) /gm)].map(([, signs]) => signs!.length);
    expect(levels.filter((level) => level === 1)).toHaveLength(1);
    levels.forEach((level, i) => {
      if (i > 0) expect(level).toBeLessThanOrEqual(levels[i - 1]! + 1);
    });
  });
});

test.each(documents)('%s: every relative link and anchor leads somewhere', (path) => {
  const broken = linksOf(path).filter(({ to, anchor }) => {
    if (!exists(to)) return true;
    return anchor !== undefined && to.endsWith('.md') && !anchorsOf(to).has(anchor);
  });
  expect(broken).toEqual([]);
});

test('the contents page leads to every page', () => {
  const reached = new Set(linksOf(CONTENTS).map(({ to }) => to));
  const decisions = linksOf('docs/internals/decisions.md').map(({ to }) => to);
  const missing = pages.filter(
    (path) => path !== CONTENTS && !reached.has(path) && !decisions.includes(path),
  );
  expect(missing).toEqual([]);
});
