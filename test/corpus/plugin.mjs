/**
 * Runs protoc-gen-rdma-rpc under protoc and under buf on a part of the corpus. Each byte of the output must
 * equal that of the command line. buf (with a buf.gen.yaml as in docs/reference/generator.md) is an optional
 * package of the corpus, and protoc is a package of the system. When one of them is missing, the script
 * prints that.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { generate } from '../../dist/codegen/index.js';
import { companionFaults } from './companions.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');

/** Groups that are complete and have one include directory. */
const forBuf = ['dapr', 'durabletask', 'validate'];
/** BigQuery is left out, because its messages contain messages of descriptor.proto. */
const forProtoc = ['dapr', 'google-api', 'google-iam', 'google-maps', 'google-cloud'];
const filesOf = ({ name, files }) =>
  name === 'google-cloud' ? files.filter((file) => file.includes('/bigquery/')) : files;

const genYaml = `version: v2
plugins:
  - local: protoc-gen-rdma-rpc
    out: out
    include_imports: true
`;
const without = genYaml.replace(/.*include_imports.*\n/, '');
const bufYaml = 'version: v2\nmodules:\n  - path: proto\n';

/**
 * Makes an empty directory with the plugin in `bin` and an empty folder `out`. Returns an environment in
 * which the plugin is found.
 */
function prepare(place) {
  rmSync(place, { recursive: true, force: true });
  for (const name of ['bin', 'out']) mkdirSync(join(place, name), { recursive: true });
  const script = `#!/bin/sh\nexec ${process.execPath} ${join(root, 'dist/cli/protoc-gen.js')}\n`;
  writeFileSync(join(place, 'bin/protoc-gen-rdma-rpc'), script, { mode: 0o755 });
  return { ...process.env, PATH: `${join(place, 'bin')}:${process.env.PATH}` };
}

function underBuf(buf, place, include, files) {
  const env = prepare(place);
  symlinkSync(include, join(place, 'proto'));
  writeFileSync(join(place, 'buf.yaml'), bufYaml);
  writeFileSync(join(place, 'buf.gen.yaml'), genYaml);
  const paths = files.flatMap((file) => ['--path', join('proto', relative(include, file))]);
  return spawnSync(buf, ['generate', ...paths], { cwd: place, encoding: 'utf8', env });
}

function underProtoc(protoc, place, include, files) {
  const env = prepare(place);
  const paths = files.map((file) => relative(include, file));
  const flags = [`--rdma-rpc_out=${join(place, 'out')}`, `-I${include}`];
  return spawnSync(protoc, [...flags, ...paths], { encoding: 'utf8', env });
}

/**
 * Returns the files in `place` that differ from the output of the command line. With `all`, missing files are
 * also returned.
 */
async function differences(place, include, files, all) {
  const { outputs } = await generate({ files, include: [include] });
  const made = outputs.filter(({ path }) => all || existsSync(join(place, 'out', path)));
  const errors = made
    .filter(({ path, text }) => {
      const file = join(place, 'out', path);
      return !existsSync(file) || readFileSync(file, 'utf8') !== text;
    })
    .map(({ path }) => `${path} is not what the command line makes`);
  return { count: made.length, errors };
}

async function compare(what, program, run, place, groups, all) {
  const { status, stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' });
  if (status !== 0)
    return { what: `plugin under ${what}`, count: 0, errors: [], notRun: `${what} is not there` };
  const sum = { what: `plugin under ${what} (${stdout.trim()})`, count: 0, errors: [], notRun: '' };
  for (const group of groups) {
    const [include] = group.include;
    const files = filesOf(group);
    const { status: code, stderr } = run(program, join(place, group.name), include, files);
    if (code !== 0) sum.errors.push(`${group.name}: ${stderr.slice(0, 500)}`);
    const { count, errors } = await differences(join(place, group.name), include, files, all);
    sum.count += count;
    sum.errors.push(...errors);
  }
  return sum;
}

/** Generates one file alone. Returns buf's errors. */
function oneUnderBuf(buf, place, path, imports, env) {
  writeFileSync(join(place, 'buf.yaml'), bufYaml);
  writeFileSync(join(place, 'buf.gen.yaml'), imports ? genYaml : without);
  const options = { cwd: place, encoding: 'utf8', env };
  const { status, stderr } = spawnSync(buf, ['generate', '--path', path], options);
  return status === 0 ? '' : stderr.slice(0, 500);
}

function compareCompanions(buf, place) {
  const what = 'companions under buf';
  if (!existsSync(buf)) return { what, count: 0, errors: [], notRun: 'buf is not there' };
  const run = (...given) => oneUnderBuf(buf, ...given);
  return { what, ...companionFaults(place, prepare, run), notRun: '' };
}

/**
 * Compares the output of the plug-in with the output of `rdma-rpc gen`. `found` has the groups with their
 * files.
 */
export async function comparePlugins(cache, found) {
  const named = (names) => found.filter(({ name }) => names.includes(name));
  const buf = join(cache, 'node_modules/.bin/buf');
  return [
    await compare('buf', buf, underBuf, join(cache, 'buf'), named(forBuf), true),
    compareCompanions(buf, join(cache, 'buf/companions')),
    // protoc passes only the requested files, without imports.
    await compare('protoc', 'protoc', underProtoc, join(cache, 'protoc'), named(forProtoc), false),
  ];
}
