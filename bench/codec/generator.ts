/**
 * Measures the cost of the generator: a .proto of 1,000 messages, as whole processes, compared with ts-proto
 * and protobuf-es under protoc. It also measures how long the compiler takes for the output. Outputs in
 * TypeScript are compared with each other, and so are declarations. main.ts calls it. It installs the two
 * plugins into build/bench-generator.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Verdict } from '../goals.ts';
import { packageRoot } from '../paths.ts';
import { table } from '../report.ts';
import { median } from './goals.ts';

const directory = join(packageRoot, 'build', 'bench-generator');
const messages = 1000;
/**
 * The compiler runs in more rounds, because it takes less time than generators do, and is closer to its goal.
 */
const compileRounds = 5;
const generateGoalMs = 2000;
/** A process that takes longer gets no figure. */
const processMsMax = 300_000;
const plugins = { 'ts-proto': '2.18.0', '@bufbuild/protoc-gen-es': '2.17.0', '@bufbuild/protobuf': '2.17.0' };

export interface Generation {
  readonly what: string;
  readonly peer: string;
  /** Undefined when the row is derived from the output of another row. */
  readonly generateMs: number | undefined;
  readonly tscMs: number;
}

interface Candidate {
  readonly what: string;
  /** The name of the row's output folder. */
  readonly peer: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Whether the compiler reads a `.d.ts` instead of a `.ts`. */
  readonly declarations: boolean;
  /** Number of the compiler's rounds. A row that no goal refers to needs only one round. */
  readonly compileRounds: number;
}

/**
 * Our generated `.ts` file without its line `@ts-nocheck`. The row shows how much time that line saves the
 * compiler, and what removing it costs a project.
 */
const checked = 'ours-checked';

const compiler = join(packageRoot, 'node_modules/typescript');
const plugin = (name: string) => `--plugin=${join(directory, 'node_modules/.bin', name)}`;

function ours(what: string, peer: string, target: string): Candidate {
  const main = join(packageRoot, 'dist/cli/main.js');
  const args = [main, 'gen', 'thousand.proto', '-o', `out/${peer}`, '--target', target];
  return { what, peer, command: process.execPath, args, declarations: target === 'js', compileRounds };
}

function es(what: string, peer: string, target: string): Candidate {
  const args = [
    plugin('protoc-gen-es'),
    `--es_opt=target=${target}`,
    `--es_out=out/${peer}`,
    'thousand.proto',
  ];
  return { what, peer, command: 'protoc', args, declarations: target !== 'ts', compileRounds };
}

const candidates: readonly Candidate[] = [
  ours('rdma-rpc gen', 'ours', 'ts'),
  es('protoc, protobuf-es, target=ts', 'es', 'ts'),
  ours('rdma-rpc gen --target js', 'ours-js', 'js'),
  es('protoc, protobuf-es', 'es-js', 'js+dts'),
  {
    what: 'protoc, ts-proto',
    peer: 'ts-proto',
    command: 'protoc',
    args: [plugin('protoc-gen-ts_proto'), '--ts_proto_out=out/ts-proto', 'thousand.proto'],
    declarations: false,
    compileRounds: 1,
  },
];

function compilerVersion(): string {
  return (JSON.parse(readFileSync(join(compiler, 'package.json'), 'utf8')) as { version: string }).version;
}

/** Returns fields of every kind and, in each message, one field of another message type. */
function schema(): string {
  const message = (i: number) => `// Number ${i}.
message Message${i} {
  int32 id = 1;
  string name = 2;
  optional int64 amount = 3;
  repeated string tags = 4;
  map<string, uint32> counts = 5;
  oneof choice {
    bool yes = 6;
    bytes data = 7;
  }
  Message${(i * 7) % messages} other = 8;
  Level level = 9;
}
`;
  return `syntax = "proto3";
package bench.thousand;
enum Level {
  LEVEL_NONE = 0;
  LEVEL_HIGH = 1;
}
${Array.from({ length: messages }, (_, i) => message(i)).join('')}`;
}

/** Returns the milliseconds of a whole process, or the reason why it has no figure. */
function timed(command: string, args: readonly string[]): number | string {
  const start = performance.now();
  const { status, stderr, stdout, error } = spawnSync(command, args, {
    cwd: directory,
    encoding: 'utf8',
    timeout: processMsMax,
  });
  if (status === 0) return performance.now() - start;
  return error?.message ?? (stderr || stdout).split('\n').slice(0, 2).join(' ');
}

/** Returns the reason why the plugins are missing, or an empty string when they are installed. */
function prepare(): string {
  rmSync(join(directory, 'out'), { recursive: true, force: true });
  for (const { peer } of candidates) mkdirSync(join(directory, 'out', peer), { recursive: true });
  writeFileSync(
    join(directory, 'package.json'),
    JSON.stringify({ private: true, type: 'module', dependencies: plugins }),
  );
  writeFileSync(join(directory, 'thousand.proto'), schema());
  const flags = ['install', '--no-audit', '--no-fund', '--prefer-offline'];
  if (!existsSync(join(directory, 'node_modules/ts-proto'))) {
    const installed = timed('npm', flags);
    if (typeof installed === 'string')
      return `npm could not install ts-proto and protoc-gen-es: ${installed}`;
  }
  const own = join(directory, 'node_modules/rdma-rpc');
  if (!existsSync(own)) symlinkSync(packageRoot, own, 'dir');
  return typeof timed('protoc', ['--version']) === 'string'
    ? 'protoc is missing (Debian package protobuf-compiler)'
    : '';
}

function compile({ peer, declarations }: Pick<Candidate, 'peer' | 'declarations'>): number | string {
  const compilerOptions = {
    target: 'es2023',
    module: 'nodenext',
    strict: true,
    noEmit: true,
    // When the option is on, the compiler does not check declarations.
    skipLibCheck: !declarations,
    types: [],
    rewriteRelativeImportExtensions: true,
  };
  const config = join(directory, `tsconfig.${peer}.json`);
  writeFileSync(config, JSON.stringify({ compilerOptions, include: [`out/${peer}`] }));
  return timed(process.execPath, [join(compiler, 'bin/tsc'), '-p', config]);
}

/**
 * Returns the milliseconds of each candidate that could run, in interleaved rounds. The reasons why other
 * candidates could not run are printed.
 */
function interleaved<T extends { readonly what: string }>(
  all: readonly T[],
  rounds: (each: T) => number,
  run: (each: T) => number | string,
): number[][] {
  const samples = all.map((): number[] => []);
  for (let round = 0; round < Math.max(...all.map(rounds)); round++) {
    for (const [i, each] of all.entries()) {
      if (round >= rounds(each)) continue;
      const found = run(each);
      if (typeof found === 'number') samples[i]?.push(found);
      else console.log(`not run: ${each.what}: ${found}`);
    }
  }
  return samples;
}

function writeChecked(): void {
  const output = join(directory, 'out/ours/thousand.rdma.ts');
  // The reason why the output is missing has already been printed.
  if (!existsSync(output)) return;
  const text = readFileSync(output, 'utf8');
  mkdirSync(join(directory, 'out', checked), { recursive: true });
  writeFileSync(join(directory, 'out', checked, 'thousand.rdma.ts'), text.replace('// @ts-nocheck\n', ''));
}

/** A row in which a program could not run has no figure. */
export function measureGenerator(rounds: number): Generation[] {
  const why = prepare();
  if (why !== '') console.log(`not run: generators side by side: ${why}`);
  const runnable = candidates.filter(({ command }) => why === '' || command !== 'protoc');
  const generated = interleaved(
    runnable,
    () => rounds,
    ({ command, args }) => timed(command, args),
  );
  writeChecked();
  const all = [
    ...runnable,
    { what: 'rdma-rpc gen, @ts-nocheck taken away', peer: checked, declarations: false, compileRounds: 1 },
  ];
  const compiled = interleaved(all, (each) => (rounds === 1 ? 1 : each.compileRounds), compile);
  return all.map(({ what, peer }, i) => ({
    what,
    peer,
    generateMs: peer === checked ? undefined : median(generated[i] ?? []),
    tscMs: median(compiled[i] ?? []),
  }));
}

export function judgeGenerator(rows: readonly Generation[]): Verdict[] {
  const row = (peer: string) => rows.find((each) => each.peer === peer);
  const [ours, oursJs, tsProto] = [row('ours'), row('ours-js'), row('ts-proto')];
  const ms = (value: number | undefined) =>
    value === undefined || Number.isNaN(value) ? 'not run' : `${Math.round(value)} ms`;
  const verdict = (goal: string, found: number | undefined, most: number | undefined): Verdict => ({
    goal,
    found: `${ms(found)} against ${ms(most)}`,
    reached:
      found === undefined || most === undefined || Number.isNaN(found + most) ? undefined : found <= most,
  });
  return [
    verdict('1,000 messages generated, whole process: at most 2 s', ours?.generateMs, generateGoalMs),
    verdict(
      '1,000 messages generated: at most half of ts-proto',
      ours?.generateMs,
      tsProto?.generateMs && tsProto.generateMs / 2,
    ),
    verdict(
      "tsc on 1,000 messages, JavaScript with declarations: at most protobuf-es's",
      oursJs?.tscMs,
      row('es-js')?.tscMs,
    ),
    verdict("tsc on 1,000 messages, TypeScript: at most protobuf-es's", ours?.tscMs, row('es')?.tscMs),
  ];
}

export function generatorTable(rows: readonly Generation[]): string {
  return table([
    ['1,000 messages', 'generate ms', `tsc ${compilerVersion()}, ms`],
    ...rows.map(({ what, generateMs, tscMs }) => [
      what,
      ...[generateMs, tscMs].map((ms) =>
        ms === undefined ? '-' : Number.isNaN(ms) ? 'not run' : String(Math.round(ms)),
      ),
    ]),
  ]);
}
