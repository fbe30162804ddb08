// Runs the benchmark: installs the frameworks that it compares with (bench/peers, once), builds the limit's addon, then starts
// dist/bench/main.js. Called by `npm run bench` after setup, which has built everything else.
import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const peers = `${root}bench/peers`;

function run(what, command, args, options = {}) {
  process.stderr.write(`bench: ${what}\n`);
  const { status, error, stdout, stderr } = spawnSync(command, args, {
    cwd: root,
    encoding: 'utf8',
    ...options,
  });
  if (status === 0) return true;
  process.stderr.write(
    `bench: ${command} ${args.join(' ')} failed\n${error?.message ?? ''}${stdout}${stderr}\n`,
  );
  return false;
}

/** The lock file npm writes into node_modules is as new as the last install. */
function installed() {
  const mark = `${peers}/node_modules/.package-lock.json`;
  return existsSync(mark) && statSync(mark).mtimeMs >= statSync(`${peers}/package-lock.json`).mtimeMs;
}

function limitBuilt() {
  const addon = `${root}build/limit/Release/limit.node`;
  if (!existsSync(addon)) return false;
  const sources = ['CMakeLists.txt', 'addon.cc', 'pump.cc', 'pump.h', 'shared.cc', 'shared.h'];
  return sources.every((name) => statSync(`${root}bench/limit/${name}`).mtimeMs <= statSync(addon).mtimeMs);
}

if (
  !installed() &&
  !run('installing grpc-js, connect-node, protobufjs …', 'npm', ['ci', '--ignore-scripts'], { cwd: peers })
) {
  process.stderr.write('bench: going on without them; their rows will be missing\n');
}
if (
  !limitBuilt() &&
  !run('building the limit', 'npx', ['cmake-js', 'compile', '-d', 'bench/limit', '-O', 'build/limit'])
) {
  process.exit(1);
}
const { status } = spawnSync(process.execPath, [`${root}dist/bench/main.js`, ...process.argv.slice(2)], {
  stdio: 'inherit',
});
process.exit(status ?? 1);
