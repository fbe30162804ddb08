/**
 * Writes a set of text files: either all of them or none. generate() and scaffold() call it. A path that
 * cannot be written is reported like any other wrong input, as a GenerateError.
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

/**
 * Returns the content of a file, or undefined when the file does not exist. Throws for a device, which may
 * have no end.
 */
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
 * Texts by absolute path. Each text is first written beside its final path. The files are replaced only after
 * all texts have been written.
 */
export function writeTexts(texts: ReadonlyMap<string, string>): void {
  const drafts: { readonly draft: string; readonly place: string; readonly file: string }[] = [];
  try {
    for (const [file, text] of texts) {
      orRefuse(file, () => {
        makeDirectory(dirname(file));
        const there = existsSync(file);
        // rename() requires only the right to write to the directory, and would replace a link by a file.
        if (there) accessSync(file, constants.W_OK);
        const place = there ? realpathSync(file) : file;
        const draft = `${place}.${process.pid}.new`;
        drafts.push({ draft, place, file });
        writeFileSync(draft, text, { mode: there ? statSync(place).mode : 0o666 });
      });
    }
    for (const { draft, place, file } of drafts) orRefuse(file, () => renameSync(draft, place));
  } finally {
    // `force` does not suffice, because since Node 24 a path below a file is an error even with `force`.
    for (const { draft } of drafts) if (existsSync(draft)) rmSync(draft);
  }
}

/**
 * Creates one directory at a time. `mkdirSync` with `recursive` never returns for a path inside a directory
 * that permits no new directories, such as /proc.
 */
function makeDirectory(directory: string): void {
  if (existsSync(directory)) return;
  const above = dirname(directory);
  if (above !== directory) makeDirectory(above);
  try {
    mkdirSync(directory);
  } catch (error) {
    // Another run may create the directory at the same time.
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
