/**
 * Lists the project's own files, as the house tests see them: the files that git tracks or would track. This
 * file also works without git.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { globSync } from 'tinyglobby';

export const root = fileURLToPath(new URL('../..', import.meta.url));

const BINARY = /\.(bin|png|node|gz|tgz)$/;

/** Returns paths relative to the root. */
export function projectFiles(): string[] {
  return (listedByGit() ?? notIgnored()).filter((path) => !BINARY.test(path) && isFile(path));
}

/**
 * Returns undefined for sources from a tarball, when git is missing, and when git refuses a checkout of
 * another user.
 */
export function listedByGit(): string[] | undefined {
  // Git would take a repository around an unpacked tarball for our repository.
  if (!exists('.git')) return undefined;
  const flags = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  const { status, stdout } = spawnSync('git', flags, { cwd: root, encoding: 'utf8' });
  return status === 0 ? stdout.split('\0').filter((path) => path !== '') : undefined;
}

/** Returns all files except those that .gitignore names. */
export function notIgnored(): string[] {
  const ignore = read('.gitignore').trim().split('\n').map(globOf);
  return globSync('**', { cwd: root, dot: true, ignore: ['.git', ...ignore] });
}

/** Converts a line of .gitignore to a glob. The function supports only the forms that our .gitignore uses. */
function globOf(line: string): string {
  if (/^(#|!|$)|\*\*/.test(line)) throw new Error(`.gitignore: '${line}' is of a form that is not read here`);
  const path = line.endsWith('/') ? `${line}**` : line;
  return path.startsWith('/') ? path.slice(1) : `**/${path}`;
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
