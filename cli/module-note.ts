/**
 * The note that `rdma-rpc gen` prints when its output, which consists of ES modules, is in a CommonJS
 * package. `npm init -y` creates such a package.
 */
import { readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

/**
 * Returns a note when Node would refuse the generated files as they are. `out` is the output directory.
 * Returns an empty text when no note is needed.
 */
export function moduleNote(out: string, target: 'ts' | 'js'): string {
  const path = packageAbove(resolve(out));
  if (path === undefined || typeOf(path) !== 'commonjs') return '';
  const where = `note: ${relative(process.cwd(), path)} says "type": "commonjs"`;
  const remedy = '`npm pkg set type=module` makes Node run them as they are';
  return target === 'js'
    ? `${where}, and these files are ES modules, which Node refuses there: ${remedy}`
    : `${where}: there these files have to be compiled to CommonJS; ${remedy}`;
}

/** Returns the path of the nearest package.json, whose field `type` decides how a file is read. */
function packageAbove(directory: string): string | undefined {
  const path = join(directory, 'package.json');
  if (typeOf(path) !== undefined) return path;
  const parent = dirname(directory);
  return parent === directory ? undefined : packageAbove(parent);
}

/**
 * Returns `type` of a package.json, '' when it has no `type`, or undefined when the file does not exist or
 * cannot be read.
 */
function typeOf(path: string): string | undefined {
  try {
    const { type = '' } = JSON.parse(readFileSync(path, 'utf8')) as { type?: string };
    return type;
  } catch {
    return undefined;
  }
}
