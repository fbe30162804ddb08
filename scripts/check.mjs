/**
 * What must hold before a change is kept, in two tiers. `npm run check`, for whoever makes a change; `.ci/run`, which is this with --all, for each
 * change, from a fresh clone. Later steps run even when an earlier one failed; the last line is the sum. With --all it ends in the time that it
 * has, however slow the machine: what matters most comes first, and what no time was left for says so.
 *
 *   node scripts/check.mjs [--all]
 *
 * It starts before npm has installed anything, so it uses nothing but Node.
 */
import { parseArgs } from 'node:util';
import { MAIN_NODE } from './quickstart-tools.mjs';
import { clear, recorded, summarize } from './results.mjs';
import { ahead, check, runStages, suite } from './stages.mjs';

/** Of --all: no step begins later, and none goes on for longer. Whoever runs .ci/run stops it after 90 minutes, and then nobody sees a sum. */
const BEGIN_MS = 70 * 60_000;
const END_MS = 84 * 60_000;
const SANITIZERS = 'address,undefined';

/** Once, with the main Node and without sanitizers, all that has no end is tried; elsewhere a fifth of it (test/extent.ts). */
const everything = (...command) => ['env', 'RDMA_RPC_EXTENT=all', ...command];
const npm = (script) => ['npm', 'run', '--silent', script];
const script = (name, ...flags) => ['node', `scripts/${name}.mjs`, ...flags];

const SETUP = [[check('setup', ...script('setup', '--tests'))]];
const SOURCES = [
  check('lint and format', ...npm('lint')),
  check('unused files, exports and packages', ...npm('lint:unused')),
  check('C++ format', ...script('clang-format')),
  check('types, generated code included', 'npx', '--no-install', 'tsc', '-p', 'tsconfig.json', '--noEmit'),
  check('shell scripts', ...script('shellcheck')),
];
const sanitized = (kind, ...flags) => script(kind, ...flags, `--sanitize=${SANITIZERS}`);
const NATIVE_AHEAD = ahead('sanitized native tests: build', ...sanitized('native-tests', '--build'));
const NATIVE_SANITIZED = [[suite('native tests, sanitized', ...sanitized('native-tests'))]];

/** The tiers: lists of stages. Only steps that keep one core busy, and that no clock decides, share a stage. */
const CONTRIBUTOR = [
  SETUP,
  [SOURCES, [NATIVE_AHEAD]],
  [[suite('npm test', 'npm', 'test')]],
  NATIVE_SANITIZED,
];
const ALL = [
  // The README's commands, npm test among them, with the Node that most users run, on a machine that has nothing: where that
  // works they need not run on this one, too. What was built there is taken, so set-up finds its work done.
  [
    [
      {
        ...suite('bare machine', ...everything(...script('bare-machine', '--take', '--node', MAIN_NODE))),
        otherwise: suite('npm test', ...everything('npm', 'test')),
      },
    ],
  ],
  SETUP,
  [
    SOURCES,
    [
      NATIVE_AHEAD,
      ahead('sanitized addon: build', ...sanitized('addon-tests', '--build')),
      ahead('RDMA: build', ...script('rdma-tests', '--build')),
    ],
  ],
  NATIVE_SANITIZED,
  [[suite('addon, sanitized', ...sanitized('addon-tests'))]],
  // An emulated guest keeps little more than one core busy, and its time limits allow for a slow host; so do
  // those of `portable`, which is emulated for the most part. Each native suite runs on one kind of device
  // with sanitizers and on the other as it is installed.
  [
    [
      suite('RDMA rxe, sanitized', ...sanitized('rdma-tests', '--link', 'rxe')),
      suite('RDMA rxe: Node', ...script('rdma-tests', '--link', 'rxe', '--only', 'node')),
    ],
    [suite('RDMA siw', ...script('rdma-tests', '--link', 'siw')), suite('portable', ...npm('test:portable'))],
  ],
  [[suite('quick start', ...script('quickstart-tests'))]],
  [[suite('Nodes', ...script('node-tests', '--except', MAIN_NODE))]],
  [[suite('runtimes', ...npm('test:runtimes'))]],
  [
    [
      check('corpus of .proto files', ...npm('test:corpus')),
      check('conformance suite of protobuf', ...npm('test:conformance')),
    ],
  ],
  [[suite('long stops', ...npm('test:slow'))]],
];

const { all } = parseArgs({ options: { all: { type: 'boolean' } } }).values;
clear();
const begin = performance.now();
const took = await (all ? runStages(ALL, { beginMs: BEGIN_MS, endMs: END_MS }) : runStages(CONTRIBUTOR));
// One line near the end: of a long log only the end may be kept.
const steps = `${((performance.now() - begin) / 60_000).toFixed(1)} min in all: ${took.join(', ')}`;
process.exit(summarize(recorded(), [steps]) ? 0 : 1);
