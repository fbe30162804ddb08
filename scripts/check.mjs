/**
 * Runs the checks that must pass before a change is kept, in two tiers. `npm run check` is for the author of
 * a change. `.ci/run` is this script with --all, for each change, from a fresh clone. Later steps run even
 * when an earlier step failed; the last line is the sum. With --all it ends within its time limit, however
 * slow the machine is. The checks that each change must pass come first. Then as many of the slower suites
 * follow as the time allows, beginning with a different suite for each commit. A suite for which no time was
 * left is reported.
 *
 *   node scripts/check.mjs [--all]
 *
 * It starts before npm has installed anything, so it uses only Node.
 */
import { parseArgs } from 'node:util';
import { run } from './command.mjs';
import { MAIN_NODE } from './quickstart-tools.mjs';
import { clear, recorded, summarize } from './results.mjs';
import { ahead, check, runStages, suite, turned } from './stages.mjs';

/**
 * With --all, steps begin only before BEGIN_MS, and all steps end before END_MS. CI stops .ci/run after 90
 * minutes, and then the summary would be lost.
 */
const BEGIN_MS = 60 * 60_000;
const END_MS = 73 * 60_000;
const SANITIZE = '--sanitize=address,undefined';

const npm = (script) => ['npm', 'run', '--silent', script];
const script = (name, ...flags) => ['node', `scripts/${name}.mjs`, ...flags];
/** Returns the step of a suite that needs more than vitest, and therefore has its own program. */
const program = (name, ...flags) => ['node', `test/${name}/main.mjs`, ...flags];

const SETUP = [[check('setup', ...script('setup', '--tests'))]];
const SOURCES = [
  check('lint and format', ...npm('lint')),
  check('unused files, exports and packages', ...npm('lint:unused')),
  check('C++ format', ...script('clang-format')),
  check('types, generated code included', 'npx', '--no-install', 'tsc', '-p', 'tsconfig.json', '--noEmit'),
  check('shell scripts', ...script('shellcheck')),
];
const NATIVE_AHEAD = ahead('sanitized native tests: build', ...script('native-tests', '--build', SANITIZE));
const NATIVE_SANITIZED = [[suite('native tests, sanitized', ...script('native-tests', SANITIZE))]];

/**
 * The tiers, as lists of stages. Steps share a stage only if each keeps one core busy and has a result that
 * does not depend on a clock.
 */
const CONTRIBUTOR = [
  SETUP,
  [SOURCES, [NATIVE_AHEAD]],
  [[suite('npm test', 'npm', 'test')]],
  NATIVE_SANITIZED,
];
const REQUIRED = [
  // This runs the README's commands, npm test among them, with the Node that most users run, on a machine
  // without anything. If that works, the same commands need not run on this machine as well. The build of the
  // bare machine is copied to this checkout, so that set-up finds its work done.
  [
    [
      {
        ...suite('bare machine', ...script('bare-machine', '--take', '--node', MAIN_NODE)),
        otherwise: suite('npm test', 'npm', 'test'),
      },
    ],
  ],
  SETUP,
  [
    SOURCES,
    [
      NATIVE_AHEAD,
      ahead('sanitized addon: build', ...script('addon-tests', '--build', SANITIZE)),
      ahead('RDMA: build', ...program('rdma', '--build')),
    ],
  ],
  NATIVE_SANITIZED,
  [[suite('addon, sanitized', ...script('addon-tests', SANITIZE))]],
  // These are the tests that npm test leaves out.
  [[suite('what takes long', ...script('node-tests', '--node', MAIN_NODE, '--project', 'long'))]],
];
const rdma = (link, ...flags) => program('rdma', '--link', link, ...flags);
/**
 * Each of these takes about twenty minutes, except upgrade. The suite that comes first differs from commit to
 * commit, so that all of them run in turn.
 */
const TURNS = [
  // An emulated guest keeps little more than one core busy, and its time limits allow for a slow host. Each
  // native suite runs with sanitizers on one kind of device, and without them on the other kind.
  [
    [
      [suite('RDMA rxe, sanitized', ...rdma('rxe', SANITIZE))],
      [suite('RDMA siw', ...rdma('siw', '--only', 'verbs'))],
    ],
  ],
  [
    [[suite('Nodes', ...script('node-tests', '--except', MAIN_NODE))]],
    [[suite('quick start', ...program('quickstart'))]],
  ],
  // In a fresh clone, five minutes of this suite's time are the build of the previous commit's package.
  [[[suite('upgrade', ...program('upgrade'))]]],
  [
    [
      [suite('RDMA rxe: Node', ...rdma('rxe', '--only', 'node'))],
      [suite('RDMA siw: Node', ...rdma('siw', '--only', 'node'))],
    ],
  ],
  // The unlimited tests run in full once, with the main Node and without sanitizers. Elsewhere a fifth of
  // them runs (test/extent.ts).
  [[[suite('everything', 'env', 'RDMA_RPC_EXTENT=all', ...script('node-tests', '--node', MAIN_NODE))]]],
  [
    [[suite('portable', ...npm('test:portable'))], [suite('runtimes', ...npm('test:runtimes'))]],
    [
      [
        check('corpus of .proto files', ...npm('test:corpus')),
        check('conformance suite of protobuf', ...npm('test:conformance')),
      ],
    ],
    [[suite('long stops', ...npm('test:slow'))]],
  ],
];

/** Returns the hash of the commit that is checked out, or '' where the tree did not come from git. */
const commit = () => run(['git', 'rev-parse', 'HEAD']).catch(() => '');

const { all } = parseArgs({ options: { all: { type: 'boolean' } } }).values;
clear();
const begin = performance.now();
const stages = all ? [...REQUIRED, ...turned(TURNS, await commit()).flat()] : CONTRIBUTOR;
const took = await runStages(stages, all ? { beginMs: BEGIN_MS, endMs: END_MS } : {});
// Prints one line near the end, because only the end of a long log may be kept.
const steps = `${((performance.now() - begin) / 60_000).toFixed(1)} min in all: ${took.join(', ')}`;
process.exit(summarize(recorded(), [steps]) ? 0 : 1);
