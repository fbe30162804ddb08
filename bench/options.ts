/**
 * The command line of `npm run bench -- …`, and the options that other benchmarks share with it. The
 * orchestrators read it.
 */
import { InvalidArgumentError, Option, program } from 'commander';

/** The peer that `--against` compares with its older build. */
const ownPeer = 'rdma-rpc';

export interface Options {
  /**
   * The commit with which this build of rdma-rpc is compared, and the folder of its package
   * (scripts/bench.mjs).
   */
  against?: string;
  tree?: string;
  /** The file for the rows, as a JSON array. */
  json?: string;
  /** The file for the page of results, as Markdown. */
  markdown?: string;
  /** The file that contains a section for the figures that readers see first, which is README.md. */
  readme?: string;
  /**
   * Executables of Node for the measured processes. When the list is empty, the Node that runs this benchmark
   * is used.
   */
  node: string[];
  /** Runs only scenarios and peers whose names begin with one of these. */
  only: string[];
  rounds: number;
  /** Runs one short round, which checks that everything runs and is not a measurement. */
  quick: boolean;
}

/** Parses the value of `--rounds`. */
export function roundsOf(text: string): number {
  const rounds = Number(text);
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > 100) throw new InvalidArgumentError('1 to 100');
  return rounds;
}

export function parseOptions(argv: readonly string[]): Options {
  program
    .name('npm run bench --')
    .description('Measures rdma-rpc beside other frameworks: two processes, interleaved rounds, medians.')
    .option('--json <file>', 'write the rows to this file')
    .option('--markdown <file>', 'write the page of results to this file (bench/RESULTS.md)')
    .option('--readme <file>', 'write the first figures into their part of this file (README.md)')
    .option(
      '--node <file...>',
      'executables of Node to measure with, for example: node /opt/node24/bin/node',
      [],
    )
    .option(
      '--only <name...>',
      'only scenarios or peers whose name begins with one of these, for example: echo-32B limit',
      [],
    )
    .option('--rounds <n>', 'interleaved rounds', roundsOf, 3)
    .option('--against <ref>', 'rdma-rpc only, against its build of this commit, in alternating rounds')
    .addOption(new Option('--tree <directory>').hideHelp())
    .option('--quick', 'one short round: a check that everything runs, not a measurement', false)
    .parse(argv as string[]);
  return program.opts<Options>();
}

/**
 * Returns the reason why these options cannot be combined, or undefined when they can. A comparison of builds
 * measures only rdma-rpc, and has no rows to write.
 */
export function conflictOf(
  { against, tree, json, markdown, readme, node, only }: Options,
  peerNames: readonly string[],
): string | undefined {
  if (against === undefined) return undefined;
  if (tree === undefined)
    return '--against: only `npm run bench -- --against REF` builds that commit: start the benchmark with that command';
  if (json !== undefined) return '--against writes no rows: leave --json out';
  if (markdown !== undefined) return '--against is no part of the results: leave --markdown out';
  if (readme !== undefined) return '--against is no part of the results: leave --readme out';
  if (node.length > 1) return '--against measures with one Node: name one with --node';
  const peer = only.find((prefix) => peerNames.some((name) => name !== ownPeer && name.startsWith(prefix)));
  if (peer !== undefined) return `--against measures ${ownPeer} only: leave --only ${peer} out`;
  return undefined;
}

/**
 * Splits `only` into names of scenarios and names of peers. Throws for a name that is neither a scenario nor
 * a peer.
 */
export function select(
  only: readonly string[],
  scenarioNames: readonly string[],
  peerNames: readonly string[],
): { scenarios: string[]; peers: string[] } {
  const starting = (names: readonly string[], wanted: readonly string[]): string[] =>
    names.filter((name) => wanted.some((prefix) => name.startsWith(prefix)));
  for (const name of only) {
    if (starting([...scenarioNames, ...peerNames], [name]).length > 0) continue;
    throw new Error(
      `--only ${name}: no scenario or peer begins with this; available: ${scenarioNames.join(' ')} | ${peerNames.join(' ')}`,
    );
  }
  const scenarios = starting(scenarioNames, only);
  const peers = starting(peerNames, only);
  return {
    scenarios: scenarios.length > 0 ? scenarios : [...scenarioNames],
    peers: peers.length > 0 ? peers : [...peerNames],
  };
}
