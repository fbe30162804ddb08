/** The project's own files, as the house tests see them: what git tracks or would track. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

const BINARY = /\.(bin|png|node|gz|tgz)$/;

/** Paths relative to the root. */
export function projectFiles(): string[] {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  });
  return listed.split('\n').filter((path) => path !== '' && !BINARY.test(path) && isFile(path));
}

export function isFile(path: string): boolean {
  return statSync(join(root, path), { throwIfNoEntry: false })?.isFile() === true;
}

export function exists(path: string): boolean {
  return existsSync(join(root, path));
}

export function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}
