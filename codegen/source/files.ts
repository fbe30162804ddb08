/**
 * Finds .proto files: those that the user names, those that they import, and those that come with this
 * package. Called by the loader.
 */
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The directory of the .proto files that come with this package: the well-known types, descriptors and our
 * own options.
 */
export function bundledDirectory(): string {
  for (let dir = dirname(fileURLToPath(import.meta.url)); ; dir = dirname(dir)) {
    if (existsSync(join(dir, 'package.json'))) return join(dir, 'proto');
    if (dir === dirname(dir)) throw new Error('rdma-rpc: the folder `proto` of the package is missing');
  }
}

/** Files whose output is part of the package: generated code imports it from there. */
const inRuntime = new Set(
  ['any', 'duration', 'empty', 'field_mask', 'struct', 'timestamp', 'wrappers'].map(
    (name) => `google/protobuf/${name}.proto`,
  ),
);

export function isInRuntime(path: string): boolean {
  return inRuntime.has(path);
}

/** The file that declares options. Found like any other file, else the copy of this package is used. */
export const descriptorPath = 'google/protobuf/descriptor.proto';

/**
 * Whether a file is built into compilers: projects that import it have no copy and need not request its
 * output. It is generated beside the files that need it.
 */
export function isCompilers(path: string): boolean {
  return compilers.test(path);
}

const compilers =
  /^google\/protobuf\/(?:api|type|source_context|descriptor|compiler\/plugin|(?:cpp|go|java)_features)\.proto$/;

/** The deepest directory that contains all files: the default include directory. */
export function deepestDirectory(files: readonly string[]): string {
  let deepest = dirname(files[0] ?? resolve('x'));
  for (const file of files) while (!inside(deepest, file)) deepest = dirname(deepest);
  return deepest;
}

export function inside(directory: string, file: string): boolean {
  const path = relative(directory, file);
  return path !== '' && path !== '..' && !path.startsWith(`..${sep}`) && !isAbsolute(path);
}

/** The path for display. */
export function display(file: string): string {
  const path = relative(process.cwd(), file);
  return path === '..' || path.startsWith(`..${sep}`) ? file : path;
}

/**
 * Reads a file or pipe, but not a device, which may have no end. Throws what Node throws, or an Error with
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
    // It does not exist, or no file system allows such a name (ENAMETOOLONG).
    return false;
  }
}

/** Whether two paths lead to the same file, perhaps by links. */
export function isSameFile(one: string, other: string): boolean {
  return one === other || realpathSync(one) === realpathSync(other);
}

/** Returns the file that an import means, or undefined. */
export function findImport(
  path: string,
  directories: readonly string[],
  runtimeApart: boolean,
): string | undefined {
  const ours = join(bundledDirectory(), path);
  if (runtimeApart && isInRuntime(path)) return ours;
  return [...directories.map((directory) => join(directory, path)), ours].find(isFile);
}
