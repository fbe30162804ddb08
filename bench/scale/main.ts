/**
 * `npm run bench:scale`: measures how calls/s depend on a growing quantity (calls in flight, connections,
 * sizes, mixes), compared with grpc-js and node:net in the same run. It prints a table for each curve, names
 * the cliffs, and writes everything to one HTML page. It sleeps while other processes measure.
 * scripts/bench-scale.mjs starts this program.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { program } from 'commander';
import { cliffMin, cliffsOf, type Measured } from '../cliffs.ts';
import { roundsOf } from '../options.ts';
import { packageRoot } from '../paths.ts';
import { loadPeer } from '../peers.ts';
import { placementHere } from '../placement.ts';
import { figure, machineText, roundsText, table } from '../report.ts';
import { groups, Rounds } from '../rounds.ts';
import { medians, type Row } from '../rows.ts';
import { type Curve, curves } from './curves.ts';
import { cellsOf, type Drawn, type Line, pageOf } from './page.ts';

const peers = ['rdma-rpc', 'grpc-js', 'net+protobufjs'] as const;

interface Options {
  readonly only: string[];
  readonly rounds: number;
  readonly quick: boolean;
  readonly html: string;
}

function optionsOf(argv: readonly string[]): Options {
  const names = curves.map(({ name }) => name).join(', ');
  program
    .name('npm run bench:scale --')
    .description('How calls/s go with what grows, beside grpc-js and node:net.')
    .option('--only <curve...>', `curves: ${names}`, [])
    .option('--rounds <n>', 'interleaved rounds', roundsOf, 3)
    .option('--html <file>', 'the page', join(packageRoot, 'build', 'scale.html'))
    .option('--quick', 'one short round: a check that everything runs, not a measurement', false)
    .parse(argv as string[]);
  const options = program.opts<Options>();
  const unknown = options.only.find((name) => !curves.some((curve) => curve.name === name));
  if (unknown !== undefined) program.error(`--only ${unknown}: unknown curve; the curves are ${names}`);
  return options;
}

/** Returns the points of one curve at which a peer has been measured. */
function lineOf(curve: Curve, peer: string, rows: readonly Row[]): Line {
  const points = curve.points.flatMap(({ x, scenario }): Measured[] => {
    const row = rows.find((each) => each.peer === peer && each.scenario === scenario.name);
    return row === undefined ? [] : [{ x, callsPerSecond: row.callsPerSecond, disturbed: row.disturbed }];
  });
  return { peer, points, cliffs: cliffsOf(points, curve.bytes) };
}

function verdictsOf(drawn: readonly Drawn[]): string[] {
  const named = drawn.flatMap(({ axis, lines }) =>
    lines.flatMap(({ peer, cliffs }) =>
      cliffs.map(({ from, to, times }) => {
        const doubt = from.disturbed || to.disturbed ? ' (disturbed: measure it again)' : '';
        return `${peer}: from ${figure(from.x)} to ${figure(to.x)} ${axis} a call costs ${times.toFixed(2)} × what it should${doubt}`;
      }),
    ),
  );
  return named.length > 0 ? named : [`No step of more than ${cliffMin} ×.`];
}

async function main(): Promise<void> {
  const options = optionsOf(process.argv);
  const rounds = options.quick ? 1 : options.rounds;
  const here = placementHere();
  const run = new Rounds(options.quick, here.placement);
  const wanted = curves.filter(({ name }) => options.only.length === 0 || options.only.includes(name));
  const rows: Row[] = [];
  for (let round = 1; round <= rounds; round++) {
    for (const curve of wanted) {
      for (const group of groups(curve.points.map(({ scenario }) => scenario))) {
        for (const peer of peers)
          rows.push(...(await run.run(() => loadPeer(peer), group, `round ${round}/${rounds} ${peer}`)));
      }
    }
  }
  const results = medians(rows);
  const drawn = wanted.map((curve) => ({
    ...curve,
    lines: peers.map((peer) => lineOf(curve, peer, results)),
  }));
  const about = [
    `${machineText()}. The figures are ${roundsText(rounds)}. ${here.text} Made by npm run bench:scale.`,
    ...run.remarks(),
  ].join(' ');
  const verdicts = verdictsOf(drawn);
  const tables = drawn.map((each) => `## ${each.title}\n\n${table(cellsOf(each))}`);
  console.log([`# Curves\n\n${about}`, ...tables, `## Cliffs\n\n- ${verdicts.join('\n- ')}`].join('\n\n'));
  mkdirSync(dirname(options.html), { recursive: true });
  writeFileSync(options.html, pageOf(about, verdicts, drawn));
  console.log(`\nThe page: ${options.html}`);
  run.finish();
}

await main();
