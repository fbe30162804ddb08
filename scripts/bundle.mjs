/**
 * Creates dist/bundle, the code that the package ships. It has a few files instead of several hundred, which
 * import in less than half of the time. It is a step of setup.mjs, after TypeScript. package.json names the
 * entry points: each `default` is built here from the file that its condition `rdma-rpc-modules` names. The
 * entry points share their common code, so that a process has one copy of it, and an application's own bundle
 * can still leave out code that it does not use.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { build } from 'esbuild';
import { mergeParts } from './bundle-merge.mjs';
import { root } from './command.mjs';

const { bin, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const COMMANDS = { 'rdma-rpc': 'dist/cli/main.js', 'protoc-gen-rdma-rpc': 'dist/cli/protoc-gen.js' };

const entries = [
  ...Object.values(exports)
    .filter((each) => typeof each === 'object')
    .map((each) => [each.default, each['rdma-rpc-modules']]),
  ...Object.entries(bin).map(([name, path]) => [path, COMMANDS[name]]),
];

const outdir = join(root, 'dist', 'bundle');
rmSync(outdir, { recursive: true, force: true });
await build({
  absWorkingDir: root,
  entryPoints: Object.fromEntries(entries.map(([to, from]) => [basename(to, '.js'), from])),
  outdir,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  // These are peer dependencies that a user may have installed, and the packages that package.json's
  // `imports` name.
  packages: 'external',
  external: ['#*'],
  tsconfigRaw: {},
  logLevel: 'warning',
});

await mergeParts(
  outdir,
  entries.map(([to]) => basename(to)),
);

// esbuild writes `var Name = class _Name` for a class that refers to itself, and stack traces, inspect() and
// `constructor.name` would show that. Inside the class, `Name` means the same class. (keepNames would call a
// function for each closure that has a name, on hot paths too.)
for (const file of readdirSync(outdir)) {
  const path = join(outdir, file);
  const text = readFileSync(path, 'utf8');
  const classes = [...text.matchAll(/\bvar (\w+) = class _\1\b/g)].map(([, name]) => name);
  const renamed = classes.reduce(
    (all, name) => all.replaceAll(new RegExp(`\\b_${name}\\b`, 'g'), name),
    text,
  );
  if (renamed !== text) writeFileSync(path, renamed);
}
