/**
 * What `rdma-rpc gen` says once where its output, ES modules, lands in a CommonJS package, which is what `npm
 * init -y` makes.
 */
import { readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

/** `out`: where files were written. Empty when there is nothing to say. */
export function moduleNote(out: string, target: 'ts' | 'js'): string {
  const path = packageAbove(resolve(out));
  if (path === undefined || typeOf(path) !== 'commonjs') return '';
  const where = `note: ${relative(process.cwd(), path)} says "type": "commonjs"`;
  const remedy = '`npm pkg set type=module` makes Node run them as they are';
  return target === 'js'
    ? `${where}, and these files are ES modules, which Node refuses there: ${remedy}`
    : `${where}: there these files have to be compiled to CommonJS; ${remedy}`;
}

/** What decides about a file is the nearest package.json, whatever is in it. */
function packageAbove(directory: string): string | undefined {
  const path = join(directory, 'package.json');
  if (typeOf(path) !== undefined) return path;
  const parent = dirname(directory);
  return parent === directory ? undefined : packageAbove(parent);
}

/** `type` of a package.json, '' when it has none. Undefined: there is no such file, or it cannot be read. */
function typeOf(path: string): string | undefined {
  try {
    const { type = '' } = JSON.parse(readFileSync(path, 'utf8')) as { type?: string };
    return type;
  } catch {
    return undefined;
  }
}
