/**
 * Makes dist/vendor: libraries that the package brings inside itself, and NOTICES, the licences of what is in it and was written by others. A step of
 * setup.mjs. msgpackr is there because as a dependency it brings one with an install script, which pnpm refuses and npm warns of; what is
 * bundled is its JavaScript, which does the same without that.
 */
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { root } from './command.mjs';

const folder = join(root, 'dist', 'vendor');
const modules = join(root, 'node_modules');

/** What is in the package, and where: bundled here, or compiled into the addon. */
const CONTENTS = [
  { name: 'msgpackr', where: 'dist/vendor/msgpackr.js' },
  { name: 'node-addon-api', where: 'the addon in prebuilds/' },
];

function notice({ name, where }) {
  const { version, license } = JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8'));
  const file = ['LICENSE', 'LICENSE.md']
    .map((file) => join(modules, name, file))
    .find((path) => existsSync(path));
  return `${name} ${version} (${license}), in ${where}:\n\n${readFileSync(file, 'utf8').trim()}\n`;
}

mkdirSync(folder, { recursive: true });
await build({
  entryPoints: [join(modules, 'msgpackr', 'index.js')],
  outfile: join(folder, 'msgpackr.js'),
  bundle: true,
  format: 'esm',
  platform: 'neutral',
  target: 'es2023',
  logLevel: 'warning',
});
copyFileSync(join(modules, 'msgpackr', 'index.d.ts'), join(folder, 'msgpackr.d.ts'));
writeFileSync(
  join(folder, 'NOTICES'),
  `This package contains the following software of others.\n\n${CONTENTS.map(notice).join('\n----\n\n')}`,
);
