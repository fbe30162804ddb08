/**
 * Installs the Debian packages that a build needs. It installs missing packages with root or password-less
 * sudo. Without root and sudo, it prints the exact command and the caller continues with less.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root, run, which } from './command.mjs';
import { progress } from './step.mjs';

const beside = join(dirname(dirname(process.execPath)), 'include', 'node');
const uvPlaces = [
  join(process.env.npm_config_nodedir ?? '/usr', 'include', 'node'),
  beside,
  '/usr/include/node',
  '/usr/include',
];

/** Returns the folders in which protoc looks for its own .proto files, beside its own folder. */
const protocIncludes = () => [
  '/usr/include',
  ...(which('protoc') === undefined ? [] : [join(dirname(dirname(which('protoc'))), 'include')]),
];

/**
 * Returns the folder of initdb, pg_ctl and pgbench, of the newest PostgreSQL of Debian, or undefined without
 * PostgreSQL.
 */
export function postgresPrograms() {
  const folder = '/usr/lib/postgresql';
  const versions = existsSync(folder) ? readdirSync(folder) : [];
  const newest = versions.sort((a, b) => Number(b) - Number(a))[0];
  return newest === undefined ? undefined : join(folder, newest, 'bin');
}

/** The requirements of each purpose: how to check whether one is met, and the package that provides it. */
const NEEDS = {
  build: [
    { debian: 'g++', present: () => which('c++') !== undefined || which('g++') !== undefined },
    { debian: 'cmake', present: () => which('cmake') !== undefined },
    { debian: 'make', present: () => which('ninja') !== undefined || which('make') !== undefined },
    { debian: 'libuv1-dev', present: () => uvPlaces.some((place) => existsSync(join(place, 'uv.h'))) },
  ],
  tests: [
    {
      debian: 'libgtest-dev',
      present: () => ['/usr', '/usr/local'].some((prefix) => existsSync(`${prefix}/include/gtest/gtest.h`)),
    },
  ],
  // Tests compare our output with protoc's. protoc is of little use without its own .proto files, which are
  // in a package that Debian only recommends with protoc.
  protoc: [
    { debian: 'protobuf-compiler', present: () => which('protoc') !== undefined },
    {
      debian: 'libprotobuf-dev',
      present: () => protocIncludes().some((place) => existsSync(join(place, 'google/protobuf/any.proto'))),
    },
  ],
  verbs: [
    { debian: 'libibverbs-dev', present: () => existsSync('/usr/include/infiniband/verbs.h') },
    { debian: 'librdmacm-dev', present: () => existsSync('/usr/include/rdma/rdma_cma.h') },
  ],
  guest: [
    { debian: 'qemu-system-x86', present: () => which('qemu-system-x86_64') !== undefined },
    { debian: 'busybox-static', present: () => which('busybox') !== undefined },
    { debian: 'kmod', present: () => existsSync('/sbin/depmod') },
    { debian: 'iproute2', present: () => existsSync('/sbin/ip') || which('ip') !== undefined },
    { debian: 'xz-utils', present: () => which('xz') !== undefined },
    { debian: 'ibverbs-providers', present: () => existsSync('/etc/libibverbs.d/rxe.driver') },
  ],
  // The tests have a program in Python that sends descriptors over a unix socket, which Node programs cannot
  // do.
  strangers: [{ debian: 'python3', present: () => which('python3') !== undefined }],
  // Tests with a real etcd. Its package starts a service, so set-up installs it in CI only.
  etcd: [{ debian: 'etcd-server', present: () => which('etcd') !== undefined }],
  // Tests of alert rules. Its package starts a service and is large, so it is never installed automatically,
  // and tests that lack it report that.
  prometheus: [{ debian: 'prometheus', present: () => which('promtool') !== undefined }],
  // Tests with a real DNS server. Its package starts a service, so it is never installed automatically.
  knot: [{ debian: 'knot', present: () => which('knotd') !== undefined }],
  // Tests that inspect a binary.
  elf: [{ debian: 'binutils', present: () => which('readelf') !== undefined }],
  // Tests that capture packets inside the virtual machine. The guest uses the files of this host, so tcpdump
  // is needed here.
  sniffer: [{ debian: 'tcpdump', present: () => which('tcpdump') !== undefined }],
  // Tests that drive a command in a terminal.
  terminal: [{ debian: 'tmux', present: () => which('tmux') !== undefined }],
  // Tests that open a page. Chromium is large, so it is never installed automatically, and tests that lack it
  // report that.
  browser: [{ debian: 'chromium', present: () => existsSync('/usr/bin/chromium') }],
  // Tests that trace processes. bpftrace is large (it depends on LLVM), so it is never installed
  // automatically, and tests that lack it report that.
  tracing: [{ debian: 'bpftrace', present: () => which('bpftrace') !== undefined }],
  // Tests between two network namespaces of this machine.
  hosts: [
    { debian: 'iproute2', present: () => existsSync('/sbin/ip') || which('ip') !== undefined },
    { debian: 'util-linux', present: () => which('unshare') !== undefined && which('nsenter') !== undefined },
  ],
  // Programs that the tests run through the tunnel, and the benchmark of sockets. Their packages start
  // services, so they are installed in CI alone, and tests that lack one report that.
  redis: [
    { debian: 'redis-server', present: () => which('redis-server') !== undefined },
    { debian: 'redis-tools', present: () => which('redis-benchmark') !== undefined },
  ],
  postgres: [
    { debian: 'postgresql', present: () => postgresPrograms() !== undefined },
    { debian: 'util-linux', present: () => which('runuser') !== undefined || existsSync('/sbin/runuser') },
  ],
  nginx: [
    { debian: 'nginx-light', present: () => existsSync('/usr/sbin/nginx') },
    { debian: 'wrk', present: () => which('wrk') !== undefined },
  ],
  iperf3: [{ debian: 'iperf3', present: () => which('iperf3') !== undefined }],
  ssh: [
    { debian: 'openssh-server', present: () => existsSync('/usr/sbin/sshd') },
    { debian: 'openssh-client', present: () => which('scp') !== undefined },
  ],
  haproxy: [{ debian: 'haproxy', present: () => existsSync('/usr/sbin/haproxy') }],
  // The guest's kernel is built against packages that test/rdma-vm/kernel.sh unpacks in its cache. These
  // packages are for building siw.
  siw: [
    { debian: 'gcc', present: () => which('gcc') !== undefined },
    { debian: 'make', present: () => which('make') !== undefined },
    { debian: 'libelf1', present: () => existsSync('/usr/lib/x86_64-linux-gnu/libelf.so.1') },
  ],
  shell: [{ debian: 'shellcheck', present: () => which('shellcheck') !== undefined }],
  perftest: [
    { debian: 'perftest', present: () => which('ib_send_lat') !== undefined },
    { debian: 'ibverbs-utils', present: () => which('ibv_rc_pingpong') !== undefined },
  ],
  // Binaries for the package are linked with an older Debian (scripts/prebuilds.mjs).
  sysroot: [
    { debian: 'mmdebstrap', present: () => which('mmdebstrap') !== undefined },
    // Other distributions, such as Ubuntu, do not have the keys of Debian's archive.
    {
      debian: 'debian-archive-keyring',
      present: () => existsSync('/usr/share/keyrings/debian-archive-keyring.gpg'),
    },
  ],
  'portable x64': [
    {
      debian: process.arch === 'x64' ? 'g++' : 'crossbuild-essential-amd64',
      present: () => which('x86_64-linux-gnu-g++') !== undefined,
    },
  ],
  'portable arm64': [
    {
      debian: process.arch === 'arm64' ? 'g++' : 'crossbuild-essential-arm64',
      present: () => which('aarch64-linux-gnu-g++') !== undefined,
    },
  ],
  emulator: [
    { debian: 'qemu-user-static', present: () => which('qemu-aarch64-static') !== undefined },
    { debian: 'googletest', present: () => existsSync('/usr/src/googletest/googletest/CMakeLists.txt') },
  ],
  bare: [{ debian: 'mmdebstrap', present: () => which('mmdebstrap') !== undefined }],
  format: [{ debian: 'clang-format', present: () => which('clang-format') !== undefined }],
};

/** The purposes that `npm test` uses, which set-up installs. */
export const FOR_TESTS = ['build', 'verbs', 'tests', 'protoc', 'hosts', 'strangers', 'terminal'];

/** Returns all packages of `purposes`, which are keys of NEEDS. */
export const packagesOf = (purposes) =>
  purposes.flatMap((purpose) => NEEDS[purpose].map((need) => need.debian));

/** The purposes of programs that go through the tunnel. */
export const PROGRAMS = ['redis', 'postgres', 'nginx', 'iperf3', 'ssh'];

/** Returns the missing packages of `purpose`, which is a key of NEEDS. */
export function missing(purpose) {
  return NEEDS[purpose].filter((need) => !need.present()).map((need) => need.debian);
}

function asRoot() {
  if (process.getuid?.() === 0) return [];
  if (which('sudo') === undefined) return undefined;
  return spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0 ? ['sudo', '-n'] : undefined;
}

/**
 * Installs the missing packages of `purpose`. Resolves to '' or to the reason why a package is still missing,
 * with the command to run.
 */
export async function install(purpose) {
  const packages = missing(purpose);
  if (packages.length === 0) return '';
  const command = ['apt-get', 'install', '-y', '--no-install-recommends', ...packages];
  const advice = `missing: ${packages.join(', ')}. Install with: sudo ${command.join(' ')}`;
  const prefix = asRoot();
  if (which('apt-get') === undefined)
    return `missing: ${packages.join(', ')} (and no apt-get to install with)`;
  if (prefix === undefined) return `${advice} (neither root nor password-less sudo here)`;
  // Two steps of check.mjs may install at once, and apt does not wait for another process that updates its
  // lists.
  const lock = join(root, 'build', '.apt.lock');
  mkdirSync(dirname(lock), { recursive: true });
  const apt = ([command, ...args]) =>
    run([...prefix, 'flock', lock, command, '-o', 'DPkg::Lock::Timeout=300', ...args], {
      env: { DEBIAN_FRONTEND: 'noninteractive' },
    });
  try {
    await progress(`Debian packages: ${packages.join(', ')}`, async () => {
      try {
        await apt(command);
      } catch {
        await apt(['apt-get', 'update']);
        await apt(command);
      }
    });
    return '';
  } catch (error) {
    return `${advice} (${error.message})`;
  }
}
