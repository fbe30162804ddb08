/**
 * Tests that the drawings of docs/pictures equal the output of scripts/drawings.mjs, and each drawing is on a
 * page.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { read, root } from '../house/tree.ts';
import { documents } from './document.ts';

const folder = 'docs/pictures';
const { drawingFiles } = (await import(join(root, 'scripts/drawings.mjs'))) as {
  drawingFiles(): Map<string, string>;
};

test.each([...drawingFiles()])('%s is up to date, and on a page', (name, text) => {
  expect(read(`${folder}/${name}`)).toBe(text);
  expect(documents).toContain(`pictures/${name})`);
});

test('there are no other drawings', () => {
  expect(readdirSync(join(root, folder)).sort()).toEqual([...drawingFiles().keys()].sort());
});
