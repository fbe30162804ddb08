/**
 * The Node executables that run the measured processes: this Node, or those that `--node` names. The
 * orchestrators use this file.
 */
import { spawnSync } from 'node:child_process';

export interface Node {
  /** The path of the executable. */
  readonly file: string;
  /** The version as in `process.versions`, for example `24.11.1`. */
  readonly version: string;
  readonly v8: string;
}

/** The Node that runs the orchestrator. */
export const ownNode: Node = {
  file: process.execPath,
  version: process.versions.node,
  v8: process.versions.v8,
};

/** Describes the executable at `file`. Throws when the file does not run, or is not Node. */
function nodeOf(file: string): Node {
  const { stdout, error } = spawnSync(file, ['-p', 'JSON.stringify(process.versions)'], { encoding: 'utf8' });
  try {
    const { node, v8 } = JSON.parse(stdout) as { node: string; v8: string };
    return { file, version: node, v8 };
  } catch {
    throw new Error(`--node ${file}: this is not a Node that runs here${error ? ` (${error.message})` : ''}`);
  }
}

/** Returns the Nodes of these executables, or this Node if the list is empty. Throws like nodeOf(). */
export function nodesOf(files: readonly string[]): readonly [Node, ...Node[]] {
  const [first, ...others] = files.map(nodeOf);
  return first === undefined ? [ownNode] : [first, ...others];
}

export function nodeText({ version, v8 }: Node): string {
  return `Node ${version} (V8 ${v8})`;
}
