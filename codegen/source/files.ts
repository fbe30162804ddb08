/**
 * Finds .proto files: the files that the user names, the files that they import, and the files of this
 * package. The loader calls it.
 */
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Returns the directory of the .proto files that come with this package: the well-known types, descriptors
 * and our own options.
 */
export function bundledDirectory(): string {
  for (let dir = dirname(fileURLToPath(import.meta.url)); ; dir = dirname(dir)) {
    if (existsSync(join(dir, 'package.json'))) return join(dir, 'proto');
    if (dir === dirname(dir)) throw new Error('rdma-rpc: the folder `proto` of the package is missing');
  }
}

/** Files whose output is part of the package. Generated code imports it from the package. */
const inRuntime = new Set(
  ['any', 'duration', 'empty', 'field_mask', 'struct', 'timestamp', 'wrappers'].map(
    (name) => `google/protobuf/${name}.proto`,
  ),
);

export function isInRuntime(path: string): boolean {
  return inRuntime.has(path);
}

/**
 * The import path of the file that declares options. It is found like any other file; if it is not found, the
 * copy of this package is used.
 */
export const descriptorPath = 'google/protobuf/descriptor.proto';

/**
 * Returns whether a file is built into compilers. Projects that import such a file have no copy and need not
 * request its output. Its output is generated beside the files that need it.
 */
export function isCompilers(path: string): boolean {
  return compilers.test(path);
}

const compilers =
  /^google\/protobuf\/(?:api|type|source_context|descriptor|compiler\/plugin|(?:cpp|go|java)_features)\.proto$/;

/** Returns the deepest directory that contains all files, which is the default include directory. */
export function deepestDirectory(files: readonly string[]): string {
  let deepest = dirname(files[0] ?? resolve('x'));
  for (const file of files) while (!inside(deepest, file)) deepest = dirname(deepest);
  return deepest;
}

export function inside(directory: string, file: string): boolean {
  const path = relative(directory, file);
  return path !== '' && path !== '..' && !path.startsWith(`..${sep}`) && !isAbsolute(path);
}

/** Returns the path for display. */
export function display(file: string): string {
  const path = relative(process.cwd(), file);
  return path === '..' || path.startsWith(`..${sep}`) ? file : path;
}

/**
 * Reads a file or pipe, but not a device, which may have no end. Throws the error of Node, or an Error with
 * code ENODEV.
 */
export function readInput(file: string): Buffer {
  if (!statSync(file).isCharacterDevice()) return readFileSync(file);
  throw Object.assign(new Error('ENODEV: it is a device'), { code: 'ENODEV' });
}

export function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    // The file does not exist, or the file system does not allow such a name (ENAMETOOLONG).
    return false;
  }
}

/** Returns whether two paths lead to the same file, perhaps by links. */
export function isSameFile(one: string, other: string): boolean {
  return one === other || realpathSync(one) === realpathSync(other);
}

/** Returns the file that an import means, or undefined when it is not found. */
export function findImport(
  path: string,
  directories: readonly string[],
  runtimeApart: boolean,
): string | undefined {
  const ours = join(bundledDirectory(), path);
  if (runtimeApart && isInRuntime(path)) return ours;
  return [...directories.map((directory) => join(directory, path)), ours].find(isFile);
}
