/**
 * Writes a set of text files: all of them or none. Called by generate() and scaffold(). A place that cannot
 * be written to is wrong input like any other, and told as a GenerateError.
 */
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { GenerateError } from './diagnostic.ts';
import { display } from './source/files.ts';

/** What the file has; undefined: there is none. A device is no file of text: it may have no end. */
export function textOf(file: string): string | undefined {
  return orRefuse(file, () => {
    const stats = statSync(file, { throwIfNoEntry: false });
    if (stats === undefined) return undefined;
    if (!stats.isFile())
      throw new Error(stats.isDirectory() ? 'it is a directory' : 'it is not a regular file');
    return readFileSync(file, 'utf8');
  });
}

/**
 * Texts by absolute path. All of them are on the disk, each beside its place, before one of them takes its
 * place.
 */
export function writeTexts(texts: ReadonlyMap<string, string>): void {
  const drafts: { readonly draft: string; readonly place: string; readonly file: string }[] = [];
  try {
    for (const [file, text] of texts) {
      orRefuse(file, () => {
        makeDirectory(dirname(file));
        const there = existsSync(file);
        // A rename would ask for the right to write to the directory only, and would put a file where a link
        // is.
        if (there) accessSync(file, constants.W_OK);
        const place = there ? realpathSync(file) : file;
        const draft = `${place}.${process.pid}.new`;
        drafts.push({ draft, place, file });
        writeFileSync(draft, text, { mode: there ? statSync(place).mode : 0o666 });
      });
    }
    for (const { draft, place, file } of drafts) orRefuse(file, () => renameSync(draft, place));
  } finally {
    // `force` is not enough: since Node 24 a path below a file is an error all the same.
    for (const { draft } of drafts) if (existsSync(draft)) rmSync(draft);
  }
}

/**
 * By steps: asked to make all of them, Node never ends below a directory that is there and takes none, such
 * as /proc.
 */
function makeDirectory(directory: string): void {
  if (existsSync(directory)) return;
  const above = dirname(directory);
  if (above !== directory) makeDirectory(above);
  try {
    mkdirSync(directory);
  } catch (error) {
    // Another run may make it at the same time.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

function orRefuse<T>(file: string, attempt: () => T): T {
  try {
    return attempt();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why =
      code === 'EEXIST' || code === 'ENOTDIR' ? 'a part of this path is a file, not a directory' : message;
    const place = { line: 0, column: 0, text: '' };
    throw new GenerateError([
      { severity: 'error', file: display(file), ...place, message: `cannot be written: ${why}` },
    ]);
  }
}
