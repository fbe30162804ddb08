/**
 * Tests the start of a guest by test/rdma-vm/boot.sh, with a fake QEMU that records its arguments and fails
 * in various ways.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

const boot = new URL('../rdma-vm/boot.sh', import.meta.url).pathname;
/** The start of the fake QEMU: it reads `accel`, and the folder that the guest shares with the host. */
const asked = `#!/bin/bash
ctl='' accel=''
while [ $# -gt 0 ]; do
  case $1 in -accel) accel=\${2%%,*} ;; local,id=ctl,path=*) ctl=\${1#*path=}; ctl=\${ctl%%,*} ;; esac
  shift
done
`;
const succeeds = 'touch "$ctl/started"; echo "by $accel" >&3; echo 0 >"$ctl/rc"';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'rdma-vm-'));
  const top = join(folder, 'cache', '9.9-none');
  mkdirSync(join(top, 'lib/modules/9.9-none'), { recursive: true });
  mkdirSync(join(folder, 'bin'));
  writeFileSync(join(folder, 'cache/linux-image-amd64'), 'linux-image-9.9-none\n');
  writeFileSync(join(top, 'vmlinux'), 'k');
  writeFileSync(join(top, 'initramfs'), 'i');
  writeFileSync(join(top, 'version'), 'v');
  writeFileSync(join(top, 'contents'), '1 initramfs\n1 version\n1 vmlinux\n');
  // Programs that a machine without guests may lack; these tests only need them to exist. The substitute for
  // busybox must read its input, because its writer would otherwise get an error.
  const others = ['depmod', 'modprobe', 'ip', 'xz'].map((program) => [program, ''] as const);
  for (const [program, does] of [['busybox', 'cat >/dev/null\n'] as const, ...others])
    writeFileSync(join(folder, 'bin', program), `#!/bin/sh\n${does}`, { mode: 0o755 });
});
afterAll(() => rmSync(folder, { recursive: true }));

function start(qemu: string, accels: string, ...options: string[]) {
  writeFileSync(join(folder, 'bin/qemu-system-x86_64'), asked + qemu, { mode: 0o755 });
  const { status, stdout, stderr } = spawnSync(boot, [...options, 'true'], {
    encoding: 'utf8',
    env: {
      PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
      RDMA_RPC_VM_CACHE: join(folder, 'cache'),
      RDMA_RPC_VM_ACCEL: accels,
    },
  });
  return { status, stdout, stderr };
}

const isLinux = process.platform === 'linux';

test.runIf(isLinux)('KVM is used where a guest starts with it', () => {
  expect(start(succeeds, 'kvm tcg')).toMatchObject({ status: 0, stdout: 'by kvm\n' });
});

test.runIf(isLinux)('emulation takes over where KVM fails at once', () => {
  const qemu = `[ "$accel" = tcg ] || exit 1\n${succeeds}`;
  expect(start(qemu, 'kvm tcg')).toMatchObject({ status: 0, stdout: 'by tcg\n' });
});

test.runIf(isLinux)('emulation takes over where KVM stops in the middle of starting and QEMU waits', () => {
  const qemu = `[ "$accel" = tcg ] || { echo 'KVM internal error. Suberror: 1'; exec sleep 600; }\n${succeeds}`;
  expect(start(qemu, 'kvm tcg')).toMatchObject({ status: 0, stdout: 'by tcg\n' });
});

test.runIf(isLinux)(
  'an emulated guest whose kernel crashes while it boots is started once more, which is reported',
  () => {
    const breaks = 'echo \'[    3.850899] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI\' >"$ctl/console"';
    const again = start(
      `[ -e "$ctl/tried" ] || { touch "$ctl/tried"; ${breaks}; exit 0; }\n${succeeds}`,
      'tcg',
    );
    expect(again).toMatchObject({ status: 0, stdout: 'by tcg\n' });
    expect(again.stderr).toContain('rdma-vm: the guest was started again: Oops: int3: 0000');
    const never = start(`echo >>"$ctl/tried"; ${breaks}; wc -l <"$ctl/tried" >&2`, 'tcg');
    expect(never.status).toBe(125);
    expect(never.stderr).toContain('stopped without a result before it had started');
    expect(never.stderr).toContain('2\n');
    expect(never.stderr).not.toContain('3\n');
  },
);

test.runIf(isLinux)('a guest that KVM stops after it has started is an error that names KVM', () => {
  const qemu = `touch "$ctl/started"; echo 'KVM internal error. Suberror: 1'; exec sleep 600`;
  const { status, stderr } = start(qemu, 'kvm tcg');
  expect(status).toBe(125);
  expect(stderr).toContain('KVM internal error. Suberror: 1');
  expect(stderr).toContain('the guest (kvm) stopped without a result');
});

test.runIf(isLinux)('a guest that exceeds its time limit is ended, and no other accelerator is tried', () => {
  const { status, stderr } = start('exec sleep 600', 'kvm tcg', '--timeout', '1');
  expect(status).toBe(124);
  expect(stderr).toContain('not finished after 1 s');
});
