/**
 * Parses each command line of the documents with the real parser of `rdma-rpc`, without running it: those of
 * blocks of sh, those of systemd units, and the arguments of containers. A flag that was renamed fails here.
 */
import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { newProgram } from '../../cli/commands.ts';
import { checkFlags, type TunnelFlags } from '../../cli/tunnel/flags.ts';
import { parseAddress } from '../../runtime/control/socket/address.ts';
import { shown } from '../examples/kubernetes/manifests.ts';
import { read } from '../house/tree.ts';
import { pages } from './document.ts';

interface Line {
  readonly page: string;
  readonly args: readonly string[];
}

/** Splits what a shell would split. A pipe, a second command or a comment ends the words. */
function wordsOf(line: string): string[] {
  const words = line.match(/'[^']*'|[^\s']+/g) ?? [];
  const end = words.findIndex((word) => /^(#.*|\||&&|>)$/.test(word));
  return words.slice(0, end === -1 ? undefined : end).map((word) => word.replaceAll("'", ''));
}

const blocksOf = (text: string, language: string): string[] =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(([, block]) =>
    block!.replaceAll('\\\n', ' '),
  );

function linesOf(text: string, language: string, command: RegExp): string[][] {
  const lines = blocksOf(text, language).flatMap((block) => block.split('\n'));
  return lines.flatMap((line) => {
    const rest = command.exec(line)?.[1];
    return rest === undefined ? [] : [wordsOf(rest)];
  });
}

const inShells: Line[] = [...pages, { path: 'README.md', text: read('README.md') }].flatMap(
  ({ path: page, text }) =>
    linesOf(text, 'sh', /^ *(?:\$ )?(?:npx )?rdma-rpc (.*)$/).map((args) => ({ page, args })),
);
const inUnits: Line[] = pages.flatMap(({ path: page, text }) =>
  linesOf(text, 'ini', /^ExecStart=\S*\/rdma-rpc (.*)$/).map((args) => ({ page, args })),
);

interface Container {
  readonly image: string;
  readonly args?: readonly string[];
}
interface PodSpec {
  readonly initContainers?: readonly Container[];
  readonly containers: readonly Container[];
}
/** The image of the command has its name. Other images contain programs that use the package. */
const isCommand = ({ image }: Container): boolean => /\/rdma-rpc:/.test(image);
const inPods: Line[] = shown
  .filter(({ object }) => object.kind === 'Pod')
  .flatMap(({ file: page, object }) => {
    const { initContainers = [], containers } = object.spec as PodSpec;
    return [...initContainers, ...containers]
      .filter(isCommand)
      .map(({ args = [] }) => ({ page, args: [...args] }));
  });

/** Returns the error of the parser for these arguments, or '' when they are right. */
function whyWrong(args: readonly string[]): string {
  const program = newProgram();
  let errors = '';
  let ran: Command | undefined;
  for (const command of [program, ...program.commands])
    command.exitOverride().configureOutput({
      writeErr: (text) => {
        errors += text;
      },
    });
  for (const command of program.commands)
    command.action(() => {
      ran = command;
    });
  try {
    program.parse(args, { from: 'user' });
    if (ran?.name() !== args[0]) return `${args[0]} does not run`;
    if (ran?.name() === 'tunnel') checkTunnel(ran.opts());
    return '';
  } catch (error) {
    return errors || (error as Error).message;
  }
}

/** Checks the combination of flags and the addresses of a tunnel, which its parser does not check. */
function checkTunnel(flags: TunnelFlags): void {
  checkFlags(flags);
  for (const address of [flags.listen, flags.serve, flags.to, flags.metrics])
    if (address !== undefined) parseAddress(address);
}

test('the documents have command lines of all three kinds', () => {
  expect(inShells.length).toBeGreaterThan(30);
  expect([inUnits.length, inPods.length]).toEqual([1, 1]);
});

test.each([...inShells, ...inUnits, ...inPods])('$page: rdma-rpc $args', ({ args }) => {
  expect(whyWrong(args)).toBe('');
});

test.each([
  ['tunnel --listen 127.0.0.1:1 --too b:1', /required option|unknown option/],
  ['tunnel --listen 127.0.0.1:1 --to b:1 --metric 127.0.0.1:2', /unknown option '--metric'/],
  ['tunnel --listen 127.0.0.1 --to b:1', /address/],
  ['tunnel --to b:1', /either --listen/],
  ['tunel --to b:1', /unknown command|does not run/],
  ['perf send_lat 10.0.0.5 --sizes 4', /unknown option/],
])('a mistake is found: rdma-rpc %s', (line, why) => {
  expect(whyWrong(wordsOf(line))).toMatch(why);
});
