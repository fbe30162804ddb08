/**
 * The block `"rdma-rpc"` of a package.json, which configures `rdma-rpc gen` when it is called without files.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { suggestion } from '../codegen/diagnostic.ts';

export interface GenConfig {
  /** .proto files or globs. */
  readonly files?: readonly string[];
  readonly include?: readonly string[];
  readonly out?: string;
  readonly target?: 'ts' | 'js';
  readonly importExtension?: 'ts' | 'js' | 'none';
  readonly unknownFields?: 'keep' | 'drop';
  readonly int64?: 'bigint' | 'string' | 'number';
  readonly enums?: 'open' | 'closed';
}

/** The check of each key, and the key's description in errors. */
const keys: Readonly<Record<keyof GenConfig, readonly [string, (value: unknown) => boolean]>> = {
  files: ['a list of texts', isTexts],
  include: ['a list of texts', isTexts],
  out: ['a text', (value) => typeof value === 'string'],
  target: ['"ts" or "js"', (value) => value === 'ts' || value === 'js'],
  importExtension: ['"ts", "js" or "none"', (value) => value === 'ts' || value === 'js' || value === 'none'],
  unknownFields: ['"keep" or "drop"', (value) => value === 'keep' || value === 'drop'],
  int64: [
    '"bigint", "string" or "number"',
    (value) => value === 'bigint' || value === 'string' || value === 'number',
  ],
  enums: ['"open" or "closed"', (value) => value === 'open' || value === 'closed'],
};

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

/**
 * Returns the block of the nearest package.json, with paths relative to `from`, or undefined when that
 * package.json has no such block. Throws an Error that says what is wrong in the block.
 */
export function findConfig(from: string): GenConfig | undefined {
  const directory = nearest(from);
  if (directory === undefined) return undefined;
  const file = join(directory, 'package.json');
  const block = (JSON.parse(readFileSync(file, 'utf8')) as { 'rdma-rpc'?: unknown })['rdma-rpc'];
  if (block === undefined) return undefined;
  if (typeof block !== 'object' || block === null) throw new Error(`${file}: "rdma-rpc" is not an object`);
  for (const [key, value] of Object.entries(block)) {
    const rule = (keys as Readonly<Record<string, (typeof keys)['files']>>)[key];
    if (rule === undefined)
      throw new Error(
        `${file}: "rdma-rpc" has no ${key}${suggestion(key, Object.keys(keys)) || `, only ${Object.keys(keys).join(', ')}`}`,
      );
    if (!rule[1](value)) throw new Error(`${file}: "rdma-rpc".${key} must be ${rule[0]}`);
  }
  const config: GenConfig = block;
  const seen = (path: string): string => relative(from, join(directory, path)) || '.';
  return {
    ...config,
    ...(config.files && {
      files: config.files.map((path) => (path.startsWith('!') ? `!${seen(path.slice(1))}` : seen(path))),
    }),
    ...(config.include && { include: config.include.map(seen) }),
    ...(config.out !== undefined && { out: seen(config.out) }),
  };
}

function nearest(from: string): string | undefined {
  for (let directory = from; ; directory = dirname(directory)) {
    if (existsSync(join(directory, 'package.json'))) return directory;
    if (directory === dirname(directory)) return undefined;
  }
}
