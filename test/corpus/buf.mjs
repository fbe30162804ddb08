/**
 * protoc-gen-rdma-rpc under buf: some groups of the corpus, with a buf.gen.yaml as docs/GENERATOR.md has it, byte for byte what the command line makes. buf is an
 * optional package of the corpus: where it cannot be installed or run, the reason is printed.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { generate } from '../../dist/codegen/index.js';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');

/** Groups that are whole, with one include directory. */
const groups = new Set(['dapr', 'durabletask', 'validate']);

const genYaml = `version: v2
plugins:
  - local: protoc-gen-rdma-rpc
    out: out
    opt: [import_extension=js]
    include_imports: true
`;

/** Runs buf in a module of one group; `files` absolute, inside of `include`. */
async function generateWithBuf(buf, place, include, files) {
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place, { recursive: true });
  symlinkSync(include, join(place, 'proto'));
  writeFileSync(join(place, 'buf.yaml'), 'version: v2\nmodules:\n  - path: proto\n');
  writeFileSync(join(place, 'buf.gen.yaml'), genYaml);
  const bin = join(place, 'bin');
  mkdirSync(bin);
  const plugin = join(root, 'dist/cli/protoc-gen.js');
  const script = `#!/bin/sh\nexec ${process.execPath} ${plugin}\n`;
  writeFileSync(join(bin, 'protoc-gen-rdma-rpc'), script, { mode: 0o755 });
  const paths = files.flatMap((file) => ['--path', join('proto', relative(include, file))]);
  const { status, stderr } = spawnSync(buf, ['generate', ...paths], {
    cwd: place,
    encoding: 'utf8',
    env: { ...process.env, PATH: `${bin}:${process.env.PATH}` },
  });
  if (status !== 0) return { count: 0, errors: [`buf: ${stderr.slice(0, 500)}`] };
  const { outputs } = await generate({ files, include: [include], importExtension: 'js' });
  const errors = outputs
    .filter(({ path, text }) => {
      const file = join(place, 'out', path);
      return !existsSync(file) || readFileSync(file, 'utf8') !== text;
    })
    .map(({ path }) => `${path} is not what the command line makes`);
  return { count: outputs.length, errors };
}

/** `found`: groups with their files. */
export async function compareWithBuf(cache, found) {
  const buf = join(cache, 'node_modules/.bin/buf');
  const { status, stdout } = spawnSync(buf, ['--version'], { encoding: 'utf8' });
  if (status !== 0)
    return { what: 'buf', count: 0, errors: [], notRun: 'the npm package @bufbuild/buf is not there' };
  const sum = { what: `buf ${stdout.trim()}`, count: 0, errors: [], notRun: '' };
  for (const { name, include, files } of found.filter(({ name }) => groups.has(name))) {
    const { count, errors } = await generateWithBuf(buf, join(cache, 'buf', name), include[0], files);
    sum.count += count;
    sum.errors.push(...errors);
  }
  return sum;
}
