/**
 * Installs the Node versions, package managers and tools of test/quickstart/package.json into
 * build/quickstart. It serves the suites that run on another Node than the Node that started them:
 * test/quickstart/main.mjs, node-tests.mjs and bare-machine.mjs.
 */
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CommandFailed, root, run } from './command.mjs';
import { progress } from './step.mjs';

export const TOOLS = join(root, 'build', 'quickstart');
const LIST = join(root, 'test', 'quickstart', 'package.json');

/** The version that most users run, on which everything must pass. */
export const MAIN_NODE = '24';

/** Returns the major versions of Node among the tools, oldest first: `['20', '22', …]`. */
export const nodeVersions = () =>
  Object.keys(JSON.parse(readFileSync(LIST, 'utf8')).dependencies)
    .map((name) => /^node-(\d+)$/.exec(name)?.[1])
    .filter((major) => major !== undefined)
    .sort((a, b) => a - b);

/** Returns the folder that has the `node` of a major version. */
export const nodeFolder = (major) => join(TOOLS, 'node_modules', `node-${major}`, 'bin');

/** Installs the tools. Resolves to an empty string, or to the reason why the tools are not available. */
export async function installTools(suite) {
  if (process.platform !== 'linux' || process.arch !== 'x64') return 'its Nodes are those of Linux on x64';
  mkdirSync(TOOLS, { recursive: true });
  copyFileSync(LIST, join(TOOLS, 'package.json'));
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--prefer-offline'];
  try {
    await progress(`${suite}: Nodes and tools`, () => run(['npm', 'install', '--prefix', TOOLS, ...flags]));
    return '';
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    const line = error.output.split('\n').find((each) => /npm error (?!code)/.test(each));
    return `npm could not install its tools: ${line ?? error.message}`;
  }
}
