/**
 * What must hold before a change is kept, in two tiers. `npm run check`, for whoever makes a change;
 * `.ci/run`, which is this with --all, for each change, from a fresh clone. Later steps run even when an
 * earlier one failed; the last line is the sum. With --all it ends in the time that it has, however slow the
 * machine: what each change must pass comes first, then as many of the slower suites as there is time for,
 * beginning with another one for each commit. A suite for which no time was left says so.
 *
 *   node scripts/check.mjs [--all]
 *
 * It starts before npm has installed anything, so it uses nothing but Node.
 */
import { parseArgs } from 'node:util';
import { run } from './command.mjs';
import { MAIN_NODE } from './quickstart-tools.mjs';
import { clear, recorded, summarize } from './results.mjs';
import { ahead, check, runStages, suite, turned } from './stages.mjs';

/**
 * Of --all: no step begins later, and none goes on for longer. Whoever runs .ci/run stops it after 90
 * minutes, and then nobody sees a sum.
 */
const BEGIN_MS = 62 * 60_000;
const END_MS = 75 * 60_000;
const SANITIZE = '--sanitize=address,undefined';

const npm = (script) => ['npm', 'run', '--silent', script];
const script = (name, ...flags) => ['node', `scripts/${name}.mjs`, ...flags];
/** A suite that has more than vitest: its own program. */
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
 * The tiers: lists of stages. Only steps that keep one core busy, and that no clock decides, share a stage.
 */
const CONTRIBUTOR = [
  SETUP,
  [SOURCES, [NATIVE_AHEAD]],
  [[suite('npm test', 'npm', 'test')]],
  NATIVE_SANITIZED,
];
const REQUIRED = [
  // The README's commands, npm test among them, with the Node that most users run, on a machine that has
  // nothing: where that works they need not run on this one, too. What was built there is taken, so set-up
  // finds its work done.
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
  // What npm test leaves out.
  [[suite('what takes long', ...script('node-tests', '--node', MAIN_NODE, '--project', 'long'))]],
];
const rdma = (link, ...flags) => program('rdma', '--link', link, ...flags);
/**
 * Some twenty minutes each. Which of them is the first is another one for each commit, so that all have their
 * turn.
 */
const TURNS = [
  // An emulated guest keeps little more than one core busy, and its time limits allow for a slow host. Each
  // native suite runs on one kind of device with sanitizers and on the other as it is installed.
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
  [
    [
      [suite('RDMA rxe: Node', ...rdma('rxe', '--only', 'node'))],
      [suite('RDMA siw: Node', ...rdma('siw', '--only', 'node'))],
    ],
  ],
  // Once, with the main Node and without sanitizers, all that has no end is tried; elsewhere a fifth of it
  // (test/extent.ts).
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

/** The hash of the commit that is checked out; '' where the tree did not come from git. */
const commit = () => run(['git', 'rev-parse', 'HEAD']).catch(() => '');

const { all } = parseArgs({ options: { all: { type: 'boolean' } } }).values;
clear();
const begin = performance.now();
const stages = all ? [...REQUIRED, ...turned(TURNS, await commit()).flat()] : CONTRIBUTOR;
const took = await runStages(stages, all ? { beginMs: BEGIN_MS, endMs: END_MS } : {});
// One line near the end: of a long log only the end may be kept.
const steps = `${((performance.now() - begin) / 60_000).toFixed(1)} min in all: ${took.join(', ')}`;
process.exit(summarize(recorded(), [steps]) ? 0 : 1);
