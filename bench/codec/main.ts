/**
 * The benchmark of the codec and the generator. It prints medians and ratios, and then whether each goal is
 * reached. scripts/bench-codec.mjs starts this program.
 */
import { writeFileSync } from 'node:fs';
import { program } from 'commander';
import { roundsOf } from '../options.ts';
import { measureBundles } from './bundle.ts';
import { measureGenerator } from './generator.ts';
import { reportOf } from './report.ts';
import { measureSpeed, type Plan } from './speed.ts';

/** The parameters of `npm run bench:codec`, except for the number of rounds. */
const usual = { processes: 3, slices: 5, sliceMs: 8 };
const quick: Plan = { processes: 1, rounds: 1, slices: 1, sliceMs: 5 };

program
  .name('npm run bench:codec --')
  .description(
    'Measures the codec beside protobufjs and protobuf-es: a process each, turns of some milliseconds, medians.',
  )
  .option('--markdown <file>', 'write the results to this file (bench/codec/RESULTS.md)')
  .option('--only <name>', 'only messages whose name begins with this, for example: nested', '')
  .option('--rounds <n>', 'rounds in each of three processes', roundsOf, 5)
  .option('--quick', 'one short round: a check that everything runs, not a measurement', false)
  .parse();
const options = program.opts<{ markdown?: string; only: string; rounds: number; quick: boolean }>();

const plan: Plan = options.quick ? quick : { ...usual, rounds: options.rounds };
const speeds = await measureSpeed(plan, options.only);
const bundles = options.only === '' ? await measureBundles() : [];
const generations = options.only === '' ? measureGenerator(options.quick ? 1 : 3) : [];
const report = reportOf(speeds, bundles, generations, plan);
console.log(report);
if (options.markdown !== undefined) writeFileSync(options.markdown, report);
