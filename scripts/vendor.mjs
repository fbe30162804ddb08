/**
 * Creates dist/vendor: third-party code that the package contains, so that an install needs no other package,
 * and NOTICES, with the licences. It is a step of setup.mjs. Libraries are bundled as one JavaScript file
 * each; package.json's `imports` name them. As a dependency, msgpackr would depend on a package with an
 * install script, which pnpm refuses and about which npm warns. The headers are for `rdma-rpc build-addon`.
 */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { root } from './command.mjs';

const folder = join(root, 'dist', 'vendor');
const modules = join(root, 'node_modules');

/**
 * The bundles, by the libraries that are in each file. The first library gives the file its name, without its
 * scope.
 */
const BUNDLES = [
  ['@bufbuild/protobuf'],
  ['msgpackr'],
  ['commander'],
  ['picocolors'],
  ['chokidar', 'readdirp'],
  ['tinyglobby', 'fdir', 'picomatch'],
  ['hdr-histogram-js', 'pako', 'base64-js'],
];
/**
 * The parts of a library that are used, when more than its main file but not all of it is used. The same text
 * is used for its declarations.
 */
const PARTS = {
  '@bufbuild/protobuf': [
    "export { create, createFileRegistry, fromBinary, fromJson, toBinary, toJson } from '@bufbuild/protobuf';",
    "export type * from '@bufbuild/protobuf';",
    "export { toText } from '@bufbuild/protobuf/txtpb';",
    "export * from '@bufbuild/protobuf/wkt';",
    '',
  ].join('\n'),
  'hdr-histogram-js': "export { build, HistogramLogReader, HistogramLogWriter } from 'hdr-histogram-js';\n",
};
/** Unused features of a library. They are histograms in WebAssembly, which need a loader of their own. */
const LEFT_OUT = { 'hdr-histogram-js': /^@assemblyscript\/loader$|generated-wasm$/ };
/**
 * These are not minified: msgpackr, whose functions people read in profiles, and commander, whose errors are
 * named after their class.
 */
const READ_BY_PEOPLE = new Set(['msgpackr', 'commander']);
/** These files are copied unchanged, because a report's page contains their text. */
const COPIES = {
  uplot: { 'dist/uPlot.iife.min.js': 'uplot.js', 'dist/uPlot.min.css': 'uplot.css' },
};
/** Returns the comment at the beginning of a file, which names the owner and the licence. */
function heading(path) {
  const lines = readFileSync(join(modules, path), 'utf8').split('\n');
  const end = lines.findIndex((line) => !line.startsWith('//'));
  return lines
    .slice(0, end)
    .map((line) => line.replace(/^\/\/ ?/, ''))
    .join('\n');
}

/**
 * For libraries without a licence file: the licence text from another library that has it, and the statement
 * in their own sources.
 */
const LICENCES = {
  '@bufbuild/protobuf': () =>
    [
      heading('@bufbuild/protobuf/dist/esm/index.js'),
      heading('@bufbuild/protobuf/dist/esm/wire/varint.js'),
      readFileSync(join(modules, 'typescript/LICENSE.txt'), 'utf8').trim(),
    ].join('\n\n'),
};
/** CommonJS loads Node's own modules with require(), which a module does not have. */
const REQUIRE = {
  js: "import { createRequire as requireOf } from 'node:module';\nconst require = requireOf(import.meta.url);",
};
/** Header-only packages, for the addon, and the folder in them that contains the headers. */
const HEADERS = { 'node-addon-api': '', 'node-api-headers': 'include' };

const nameOf = (library) => library.slice(library.indexOf('/') + 1);

/** Returns a plugin for esbuild that replaces modules with matching names by empty modules. */
const without = (names) => ({
  name: 'without',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: names }, ({ path }) => ({ path, namespace: 'without' }));
    onLoad({ filter: /^/, namespace: 'without' }, () => ({ contents: '' }));
  },
});

function notice([name, where]) {
  const { version, license } = JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8'));
  const file = ['LICENSE', 'LICENSE.md']
    .map((file) => join(modules, name, file))
    .find((path) => existsSync(path));
  const text = file === undefined ? LICENCES[name]() : readFileSync(file, 'utf8').trim();
  return `${name} ${version} (${license}), in ${where}:\n\n${text}\n`;
}

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
for (const [name] of BUNDLES) {
  const msgpackr = name === 'msgpackr';
  const contents = PARTS[name];
  if (contents !== undefined) writeFileSync(join(folder, `${nameOf(name)}.d.ts`), contents);
  await build({
    absWorkingDir: root,
    // The main file of msgpackr is for Node and loads a binary if possible.
    ...(contents === undefined
      ? { entryPoints: [msgpackr ? join(modules, 'msgpackr', 'index.js') : name] }
      : { stdin: { contents, resolveDir: root, loader: 'ts' } }),
    outfile: join(folder, `${nameOf(name)}.js`),
    bundle: true,
    format: 'esm',
    target: 'es2023',
    logLevel: 'warning',
    ...(READ_BY_PEOPLE.has(name) ? {} : { minify: true }),
    plugins: name in LEFT_OUT ? [without(LEFT_OUT[name])] : [],
    ...(msgpackr ? { platform: 'neutral' } : { platform: 'node', banner: REQUIRE }),
  });
}
copyFileSync(join(modules, 'msgpackr', 'index.d.ts'), join(folder, 'msgpackr.d.ts'));
for (const [name, files] of Object.entries(COPIES))
  for (const [from, to] of Object.entries(files)) copyFileSync(join(modules, name, from), join(folder, to));
mkdirSync(join(folder, 'include'));
for (const [name, where] of Object.entries(HEADERS)) {
  const headers = readdirSync(join(modules, name, where)).filter((file) => file.endsWith('.h'));
  for (const file of headers) copyFileSync(join(modules, name, where, file), join(folder, 'include', file));
}
const contents = [
  ...BUNDLES.flatMap((names) => names.map((name) => [name, `dist/vendor/${nameOf(names[0])}.js`])),
  ...Object.entries(COPIES).map(([name, files]) => [name, `dist/vendor/${Object.values(files)[0]}`]),
  ...Object.keys(HEADERS).map((name) => [name, 'dist/vendor/include and the addon in prebuilds/']),
];
writeFileSync(
  join(folder, 'NOTICES'),
  `This package contains the following software of others.\n\n${contents.map(notice).join('\n----\n\n')}`,
);
