#!/usr/bin/env node
/**
 * `rdma-rpc`, the command of the published package rdma-rpc. The commands are in rdma-rpc-cli, which services
 * do not need. This file runs that package where it is installed, in the folder of the caller or beside this
 * package. When `rdma-rpc-cli` is not installed, npm fetches the same version for this one run. A package
 * that `npm pack` makes in a clone contains the commands instead of this file.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

const cli = 'rdma-rpc-cli';

/**
 * Returns the file with the commands, as found from these places, or undefined where the commands are not
 * installed.
 */
function commandsFrom(places: readonly string[]): string | undefined {
  for (const place of places) {
    try {
      const manifest = createRequire(place).resolve(`${cli}/package.json`);
      const { bin } = JSON.parse(readFileSync(manifest, 'utf8')) as { bin: Record<string, string> };
      return join(dirname(manifest), bin[cli]!);
    } catch {} // The package was not found from this place.
  }
  return undefined;
}

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};
const commands = commandsFrom([join(process.cwd(), 'package.json'), import.meta.url]);
if (commands !== undefined) await import(pathToFileURL(commands).href);
else {
  console.error(
    `rdma-rpc: the commands are in ${cli}, which is not installed here: npm fetches it for this run. ` +
      `To keep it: npm install --save-dev ${cli}@${version}`,
  );
  const run = ['exec', '--yes', `--package=${cli}@${version}`, '--', cli, ...process.argv.slice(2)];
  // On Windows npm is a script, which only a shell can start.
  const done = spawnSync('npm', run, { stdio: 'inherit', shell: process.platform === 'win32' });
  process.exitCode = done.status ?? 1;
}
