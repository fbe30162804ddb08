/**
 * Runs the generator on .proto files that this project has not written. The generator accepts all of them.
 * The output passes the compilers of three years in strict mode and loads in Node. protobuf-es and protobufjs
 * agree on random messages of every type. `npm run test:corpus` runs this script. The script installs the
 * packages that it needs into build/corpus. Without a network, the script prints "not run" and ends with exit
 * code 77.
 */

import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NOT_RUN } from '../../scripts/results.mjs';
import { checkJavaScript, compileWith, loadErased, loadTranspiled, makeCheckable } from './compile.mjs';
import { compareAll } from './equality.mjs';
import { generateGroup } from './generate.mjs';
import { filesOf, groups } from './groups.mjs';
import { comparePlugins } from './plugin.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const cache = join(here, '../../build/corpus');
const output = join(cache, 'output');
const javascript = join(cache, 'output-js');

/** Returns '' on success, or why the packages are not available. */
function install() {
  mkdirSync(cache, { recursive: true });
  copyFileSync(join(here, 'package.json'), join(cache, 'package.json'));
  const flags = [
    'install',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--no-package-lock',
    '--prefer-offline',
  ];
  const { status, stderr } = spawnSync('npm', flags, { cwd: cache, encoding: 'utf8', timeout: 600_000 });
  if (status === 0) return '';
  return `npm could not install its packages: ${stderr.split('\n').find((line) => /error/.test(line)) ?? 'no reason given'}`;
}

const why = install();
if (why !== '') {
  console.log(`not run: ${why}`);
  process.exit(NOT_RUN);
}
for (const directory of [output, javascript]) rmSync(directory, { recursive: true, force: true });

let failed = 0;
const fail = (what, lines) => {
  failed += lines.length;
  for (const line of lines.slice(0, 20)) console.log(`FAILED ${what}: ${line}`);
  if (lines.length > 20) console.log(`FAILED ${what}: and ${lines.length - 20} more`);
};

const sum = { files: 0, generated: 0, incomplete: 0, wrong: 0, messages: 0 };
const compiled = [];
const all = [];
const found = [];
for (const group of groups(join(cache, 'node_modules'))) {
  const files = filesOf(group);
  if (files.length === 0) continue;
  found.push({ ...group, files });
  const out = join(output, group.name);
  const result = await generateGroup(group, files, out);
  sum.files += files.length;
  for (const key of ['generated', 'incomplete', 'wrong', 'messages']) sum[key] += result[key];
  fail(`${group.name} generates`, result.unexpected);
  if (existsSync(out)) all.push(group.name);
  if (group.compile && existsSync(out)) {
    compiled.push(group.name);
    await generateGroup(group, files, join(javascript, group.name), 'js');
  }
  console.log(`${group.name}: ${result.generated} of ${files.length} generated${result.notes}`);
}
console.log(
  `corpus: ${sum.files} files, ${sum.generated} generated (${sum.messages} messages), ${sum.incomplete} left out since what they import is not there or refused, ${sum.wrong} refused with an error`,
);

makeCheckable(output, compiled);
for (const version of [5, 6, 7]) {
  const { count, errors } = compileWith(
    join(cache, 'node_modules', `typescript-${version}`),
    output,
    compiled,
  );
  console.log(`TypeScript ${version}: ${count} files, ${errors.length} errors`);
  fail(`TypeScript ${version}`, errors);
}
for (const { what, count, errors, notRun } of [
  loadTranspiled(cache, output, compiled),
  loadErased(cache, output, compiled),
  checkJavaScript(cache, javascript, compiled),
  ...(await comparePlugins(cache, found)),
]) {
  if (notRun !== '') console.log(`not run: ${what}: ${notRun}`);
  else console.log(`${what}: ${count} files, ${errors.length} errors`);
  fail(what, errors);
}
const { shown, failures, ...counts } = await compareAll(output, all);
console.log(
  `equality with protobuf-es and protobufjs: ${counts.types} types, ${counts.messages} random messages there and back in binary, ${counts.json} times in JSON; ${failures} errors`,
);
console.log(
  `equality: ${counts.refused} times nobody had a JSON form, ${counts.endless} types require themselves and have no messages, ${counts.known} differ as known; ${counts.damaged} damaged encodings, of which ${counts.accepted} can still be read`,
);
fail('equality', shown);
if (counts.messages === 0) fail('equality', ['nothing was compared']);
// Each process prints its first ten failures.
failed += failures - shown.length;
console.log(failed === 0 ? 'corpus: passed' : `corpus: ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
