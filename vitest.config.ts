/** Tests run on the sources; only tests that start processes or pack the package use dist. */
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig } from 'vitest/config';

const source = (path: string) => fileURLToPath(new URL(path, import.meta.url));

type Conditions = string | Readonly<Record<string, string>>;
const { name, exports } = JSON.parse(readFileSync(source('package.json'), 'utf8')) as {
  name: string;
  exports: Readonly<Record<string, Conditions>>;
};

/**
 * From `rdma-rpc` and its entry points to their sources, which `exports` of package.json has for the
 * compiler. Not by that condition itself: Vitest would start its processes with it, the processes of tests
 * would inherit it, and Node would look for TypeScript there. Whole names only, so that `rdma-rpc/codec` is
 * not taken for a path under `rdma-rpc`.
 */
const alias = Object.entries(exports).flatMap(([entry, conditions]) => {
  const path = typeof conditions === 'string' ? undefined : conditions['rdma-rpc-source'];
  return path === undefined
    ? []
    : [{ find: new RegExp(`^${name}${entry.slice(1).replace('*', '.+')}$`), replacement: source(path) }];
});

// These tests need devices, or minutes: npm run test:rdma, npm run test:quickstart.
const exclude = [...configDefaults.exclude, 'test/rdma/**', 'test/quickstart/**'];

/**
 * Folders whose files share a process, so that the sources are loaded once and not for each file, which takes
 * a second of a CPU. Their files test functions, or processes that they start, or connections that they close
 * again, and leave nothing behind in their process. The others have a process each: what a thread has once
 * (contexts, metrics, warnings that are given once) is what they test.
 */
const sharedFolders = [
  'bench',
  'channel',
  'cli',
  'client',
  'codec',
  'codegen',
  'core',
  'counters',
  'docs',
  'house',
  'loopback',
  'msgpack',
  'reverse',
  'scripts',
  'server',
  'services',
  'socket',
  'stream',
  'telemetry',
  'tensor',
  'verbs',
];

/**
 * Files that replace a module, a timer or the clock of their process, which the files after them would see,
 * or that count what all contexts of the process do: one of an earlier file may close meanwhile. A file that
 * restores the clock needs its own process, too: a context that opens under a replaced clock keeps that
 * clock's origin, and later calls on it would pass their deadlines at once. Files that write programs and run
 * them need their own process as well: a program that another thread starts at that moment inherits the open
 * file, and the kernel runs no file that is open for writing (ETXTBSY).
 */
const needsProcess =
  /\bvi\.(mock|useFakeTimers)\(|\bdeadlines\.(run|refresh|endTurn)\(|\breplaceClock\(|[^.]\bstats\(|\b0o755\b/;

const together = sharedFolders
  .flatMap((folder) =>
    readdirSync(source(`test/${folder}`), { recursive: true, encoding: 'utf8' }).map(
      (name) => `test/${folder}/${name}`,
    ),
  )
  .filter((file) => file.endsWith('.test.ts') && !needsProcess.test(readFileSync(source(file), 'utf8')));

/**
 * What takes a second and more for each of its tests: installing the package, containers, stopped processes,
 * whole commands at work, the compiler, limits of ten seconds. `npm test` leaves them to CI
 * (scripts/test.mjs).
 */
const long = [
  'bench/ours',
  'boundary/{idle-arena,memory-wait,response-wait,staging-fits,tiny-arena}',
  'channel/restart',
  'cli/bench/{bench,grpc-tls,load}',
  'cli/migrate/migrate',
  'cli/perf/{features,perf,program}',
  'cli/ping/{ping,reach}',
  'cli/top/live',
  'cli/trace/live',
  'cli/tunnel/{killed-ends,killed-programs,no-descriptors,process,relay,stopped}',
  'cli/{explain,files,output,report,secure,server}',
  'codec/shared-memory',
  'codegen/{cli,file-names,globals,huge,scaffold,typecheck}',
  'containers/*',
  'counters/page',
  'discovery/etcd-workers',
  'docs/{code,flags,units}',
  'examples/{alerts-fire,fleet-run,kv,kubernetes/schemas}',
  'interop/endings',
  'neighbours/validate',
  'nic/*',
  'package/{bundle,completion,install,packed,release}',
  'runtime/process/*',
  'runtime/{asleep,detached,no-addon,rewritten}',
  'scripts/{stages,vitest-configs,whole-programs}',
  'security/crowd',
  'slow/*',
  'socket/kill',
  'stream/{held,one-thread,pressure}',
  'tcp/{connections,far,hosts,stopped}',
].map((name) => `test/${name}.test.ts`);

/**
 * What all suites have, those too that have a configuration of their own, and choose their files themselves.
 */
export const shared = defineConfig({
  resolve: { alias },
  test: {
    pool: 'forks',
    // A worker waits for a third of its time, for processes that it starts and for deadlines. More than six
    // make the tests of stopped and slow peers too slow.
    maxWorkers: Math.min(availableParallelism() + 1, 6),
    // For what hangs. Seeded properties take a second on an idle machine and thirty on one that has ten times
    // the work it can do.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});

export default defineConfig({
  ...shared,
  test: {
    ...shared.test,
    projects: [
      {
        extends: true,
        test: { name: 'apart', include: ['test/**/*.test.ts'], exclude: [...exclude, ...together, ...long] },
      },
      {
        extends: true,
        test: { name: 'together', include: together, exclude: [...exclude, ...long], isolate: false },
      },
      { extends: true, test: { name: 'long', include: long, exclude } },
    ],
  },
});
