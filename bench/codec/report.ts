/**
 * The readable results of the codec benchmark: a line for each goal, followed by a table of medians and
 * ratios. They are written as Markdown that is also readable in a terminal.
 */
import { cpus } from 'node:os';
import { figure, goalLines, table } from '../report.ts';
import type { Bundle } from './bundle.ts';
import { asCalls, charactersAlone, standalone } from './candidates.ts';
import { type Generation, generatorTable, judgeGenerator } from './generator.ts';
import { judge, median, timesFaster } from './goals.ts';
import type { Plan, Speed } from './speed.ts';
import { stringsDominate } from './values.ts';

const head = ['message', 'codec', 'encode ns', 'ratio', 'decode ns', 'ratio'];

function cells(speed: Speed, speeds: readonly Speed[]): string[] {
  const own = speeds.find(({ case: each, peer }) => each === speed.case && peer === asCalls);
  const ratio = (direction: 'encode' | 'decode') =>
    own === undefined || own === speed
      ? '-'
      : `${timesFaster(own[direction], speed[direction]).toFixed(2)} ×`;
  return [
    `${speed.case.name}, ${speed.encodedBytes} B${stringsDominate(speed.case) ? ', strings' : ''}`,
    speed.peer,
    figure(median(speed.encode)),
    ratio('encode'),
    figure(median(speed.decode)),
    ratio('decode'),
  ];
}

export function reportOf(
  speeds: readonly Speed[],
  bundles: readonly Bundle[],
  generations: readonly Generation[],
  { processes, rounds }: Plan,
): string {
  const machine = cpus();
  const day = new Date().toISOString().slice(0, 10);
  const host = `Node ${process.versions.node}, ${machine.length} CPUs (${machine[0]?.model})`;
  const parts = [
    '# The codec',
    `${day}, ${host}. The figures are medians of ${processes * rounds} rounds of CPU time, ${rounds} in each of ${processes} processes per codec, and of the ratios within each process. Made by \`npm run bench:codec\`.`,
    goalLines([...judge(speeds, bundles), ...(generations.length === 0 ? [] : judgeGenerator(generations))]),
    `\`${asCalls}\` writes into existing memory, as calls do. It does not copy \`bytes\` of 16 KiB or more, and decodes \`bytes\` of 4 KiB or more as views. \`${standalone}\`, with its \`decode()\`, allocates memory, and copies \`bytes\` in both directions. A ratio is the time of a codec divided by the time of \`${asCalls}\`. protobufjs and protobuf-es decode \`bytes\` as views. \`${charactersAlone}\` is not a codec: it writes only the strings of the message, with the same functions, but without tags, lengths and checks. An encoder that writes string by string with these functions cannot be faster.`,
    table([head, ...speeds.map((speed) => cells(speed, speeds))]),
    ...(bundles.length === 0
      ? []
      : [
          table([
            ['bundle of one message, minified', 'codec', 'bytes'],
            ...bundles.map(({ what, peer, bytes }) => [what, peer, bytes.toLocaleString('en-GB')]),
          ]),
        ]),
    ...(generations.length === 0 ? [] : [generatorTable(generations)]),
  ];
  return `${parts.join('\n\n')}\n`;
}
