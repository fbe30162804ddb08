/**
 * Tests the error when the addon does not load, and the error of `rdma-rpc build-addon` that names the
 * missing part. test/portable/main.mjs tests the build itself.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { lacking } from '../../cli/build-addon.ts';
import { whyNoAddon, worksWithoutAddon } from '../../runtime/native/remedy.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

test.each([
  [
    'linux',
    'x64',
    '2.17',
    'install @rdma-rpc/linux-x64, which package managers leave out with --omit=optional, or build it here with: npx rdma-rpc build-addon',
  ],
  [
    'linux',
    'arm64',
    undefined,
    'this Node runs on musl (Alpine Linux), and connections between processes need glibc: use a system or an image with glibc, such as node:22-slim',
  ],
  [
    'linux',
    'riscv64',
    '2.41',
    'connections between processes need it, and it is made for Linux with glibc on x64 and arm64',
  ],
  [
    'darwin',
    'arm64',
    undefined,
    'connections between processes need it, and it is made for Linux with glibc on x64 and arm64',
  ],
  [
    'win32',
    'x64',
    undefined,
    'connections between processes need it, and it is made for Linux with glibc on x64 and arm64',
  ],
] as const)('what to do on %s %s with glibc %s, and what works', (platform, arch, glibc, remedy) => {
  const text = `rdma-rpc: no native addon; ${remedy}; ${worksWithoutAddon}`;
  expect(whyNoAddon('no native addon', { platform, arch, glibc })).toBe(text);
});

test('an invalid file that is named as the addon: the error names the variable, not the build', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-loading-'));
  const addon = join(folder, 'rdma_rpc.node');
  writeFileSync(addon, 'no shared object');
  const script = `import { createChannel } from 'rdma-rpc'; import { loadNative } from '${root}dist/runtime/native/native.js'; loadNative();`;
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    cwd: root,
    env: { ...process.env, RDMA_RPC_ADDON: addon },
    encoding: 'utf8',
  });
  rmSync(folder, { recursive: true });
  expect(status).toBe(1);
  expect(stderr).toMatch(
    /rdma_rpc\.node, which RDMA_RPC_ADDON names as the addon, does not load \(.*file too short.*\)\. Name .* or unset the variable/,
  );
  expect(stderr).not.toMatch(/build-addon/);
});

const permission =
  Number(process.versions.node.split('.')[0]) < 23 ? '--experimental-permission' : '--permission';

test.each([
  { flags: ['--no-addons'], says: /Node runs with --no-addons/ },
  { flags: [permission, '--allow-fs-read=*'], says: /Node runs with --permission.*--allow-addons/ },
  { flags: [permission, '--allow-fs-read=*', '--allow-addons'], says: /^fine$/m },
])('under $flags', ({ flags, says }) => {
  const script =
    "import { loadNative } from './dist/runtime/native/native.js'; loadNative(); console.log('fine');";
  const { stdout, stderr } = spawnSync(process.execPath, [...flags, '--input-type=module', '-e', script], {
    cwd: root,
    encoding: 'utf8',
  });
  expect(stdout + stderr).toMatch(says);
  expect(stderr).not.toMatch(/build-addon/);
});

test('RDMA_RPC_ADDON may be a bare name in the working directory', () => {
  const script = `import { addonPath } from '${root}dist/runtime/native/addon-path.js'; console.log(addonPath());`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    cwd: root,
    env: { ...process.env, RDMA_RPC_ADDON: 'package.json' },
    encoding: 'utf8',
  });
  expect(stdout).toBe(`${join(root, 'package.json')}\n`);
});

test.each([
  { there: ['g++', 'cmake', 'make'], debian: [] },
  { there: ['c++', 'cmake', 'ninja'], debian: [] },
  { there: ['clang++', 'make'], debian: ['cmake'] },
  { there: [], debian: ['g++', 'cmake', 'make'] },
])('with $there, build-addon asks for $debian', ({ there, debian }) => {
  expect(lacking((program) => (there as string[]).includes(program))).toEqual(debian);
});

test('build-addon without a compiler names the packages and ends with 1', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['dist/cli/main.js', 'build-addon'], {
    cwd: root,
    env: { PATH: '/nothing' },
    encoding: 'utf8',
  });
  expect(status).toBe(1);
  expect(stdout).toBe('');
  expect(stderr).toContain(
    'missing: g++, cmake, make. On Debian and Ubuntu: sudo apt-get install g++ cmake make',
  );
});
