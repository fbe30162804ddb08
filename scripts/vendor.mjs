/**
 * Makes dist/vendor: what others wrote and the package brings inside itself, so that it installs nothing else, and NOTICES, with their licences. A step
 * of setup.mjs. Libraries are bundled as one file of JavaScript each; package.json's `imports` name them. As a dependency msgpackr would bring one
 * with an install script, which pnpm refuses and npm warns of. The headers are for `rdma-rpc build-addon`.
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

/** Bundled, by the libraries that are in the file; the first gives it its name. */
const BUNDLES = [
  ['msgpackr'],
  ['commander'],
  ['picocolors'],
  ['chokidar', 'readdirp'],
  ['tinyglobby', 'fdir', 'picomatch'],
];
/** CommonJS asks for Node's own modules with require(), which a module does not have. */
const REQUIRE = {
  js: "import { createRequire as requireOf } from 'node:module';\nconst require = requireOf(import.meta.url);",
};
/** Packages of nothing but headers, for the addon, and where in them those are. */
const HEADERS = { 'node-addon-api': '', 'node-api-headers': 'include' };

function notice([name, where]) {
  const { version, license } = JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8'));
  const file = ['LICENSE', 'LICENSE.md']
    .map((file) => join(modules, name, file))
    .find((path) => existsSync(path));
  return `${name} ${version} (${license}), in ${where}:\n\n${readFileSync(file, 'utf8').trim()}\n`;
}

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
for (const [name] of BUNDLES) {
  const msgpackr = name === 'msgpackr';
  await build({
    absWorkingDir: root,
    // The main file of msgpackr is for Node and loads a binary where it can.
    entryPoints: [msgpackr ? join(modules, 'msgpackr', 'index.js') : name],
    outfile: join(folder, `${name}.js`),
    bundle: true,
    format: 'esm',
    target: 'es2023',
    logLevel: 'warning',
    ...(msgpackr ? { platform: 'neutral' } : { platform: 'node', banner: REQUIRE }),
  });
}
copyFileSync(join(modules, 'msgpackr', 'index.d.ts'), join(folder, 'msgpackr.d.ts'));
mkdirSync(join(folder, 'include'));
for (const [name, where] of Object.entries(HEADERS)) {
  const headers = readdirSync(join(modules, name, where)).filter((file) => file.endsWith('.h'));
  for (const file of headers) copyFileSync(join(modules, name, where, file), join(folder, 'include', file));
}
const contents = [
  ...BUNDLES.flatMap((names) => names.map((name) => [name, `dist/vendor/${names[0]}.js`])),
  ...Object.keys(HEADERS).map((name) => [name, 'dist/vendor/include and the addon in prebuilds/']),
];
writeFileSync(
  join(folder, 'NOTICES'),
  `This package contains the following software of others.\n\n${contents.map(notice).join('\n----\n\n')}`,
);
