/**
 * The benchmark of the codec and the generator: prints medians and ratios, then whether each goal is reached. Run by scripts/bench-codec.mjs.
 */
import { InvalidArgumentError, program } from 'commander';
import { writePart } from '../results.ts';
import { measureBundles } from './bundle.ts';
import { measureGenerator } from './generator.ts';
import { protobufEs, protobufjsStatic } from './peers.ts';
import { reportOf } from './report.ts';
import { measureSpeed } from './speed.ts';

const roundMs = 40;
const quickRoundMs = 5;

function roundsOf(text: string): number {
  const rounds = Number(text);
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > 100) throw new InvalidArgumentError('1 to 100');
  return rounds;
}

program
  .name('npm run bench:codec --')
  .description(
    'Measures the codec beside protobufjs and protobuf-es: one process, interleaved rounds, medians.',
  )
  .option('--markdown <file>', 'write the results into this file, and keep the other parts of it')
  .option('--only <name>', 'messages whose name begins so, for example: nested', '')
  .option('--rounds <n>', 'interleaved rounds', roundsOf, 7)
  .option('--quick', 'one short round: shows that everything runs, measures little', false)
  .parse();
const options = program.opts<{ markdown?: string; only: string; rounds: number; quick: boolean }>();

const rounds = options.quick ? 1 : options.rounds;
const peers = [await protobufjsStatic(), protobufEs()];
const speeds = measureSpeed(peers, rounds, options.quick ? quickRoundMs : roundMs, options.only);
const bundles = options.only === '' ? await measureBundles() : [];
const generations = options.only === '' ? measureGenerator(options.quick ? 1 : 3) : [];
const report = reportOf(speeds, bundles, generations, rounds);
console.log(report);
if (options.markdown !== undefined) writePart(options.markdown, 'codec', report);
