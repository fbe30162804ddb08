/**
 * Tests the errors of `npm run test:rdma -- --device` before the build, with a simulated
 * /sys/class/infiniband.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';

const script = (name: string): URL => new URL(`../../scripts/${name}`, import.meta.url);
const { whyNotDevices } = (await import(script('../test/rdma/devices.mjs').href)) as {
  whyNotDevices: (list: string, sysfs: string) => string;
};

const sysfs = mkdtempSync(join(tmpdir(), 'infiniband-'));
afterAll(() => rmSync(sysfs, { recursive: true }));

const port = (device: string, number: number, state: string): void => {
  const folder = join(sysfs, device, 'ports', String(number));
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'state'), `${state}\n`);
};
port('mlx5_0', 1, '4: ACTIVE');
port('mlx5_1', 1, '1: DOWN');
port('mlx5_1', 2, '2: INIT');
port('mlx4_0', 1, '1: DOWN');
port('mlx4_0', 2, '4: ACTIVE');

test.each([
  ['one device, which is both ends', 'mlx5_0', ''],
  ['two devices', 'mlx5_0,mlx4_0', ''],
  ['one active port of several', 'mlx4_0', ''],
  ['an empty name', '', "--device wants a name, or two with a comma between them, not ''"],
  [
    'one name and a comma',
    'mlx5_0,',
    "--device wants a name, or two with a comma between them, not 'mlx5_0,'",
  ],
  ['three names', 'a,b,c', "--device wants a name, or two with a comma between them, not 'a,b,c'"],
  ['an unknown name', 'mlx5_0,mlx5_7', "there is no RDMA device 'mlx5_7'; there is: mlx4_0, mlx5_0, mlx5_1"],
  ['a path', '../mlx5_0', "there is no RDMA device '../mlx5_0'; there is: mlx4_0, mlx5_0, mlx5_1"],
  [
    'a device that is down',
    'mlx5_0,mlx5_1',
    'mlx5_1 has no port that is ACTIVE: port 1 is DOWN, port 2 is INIT; is the link of its network interface up?',
  ],
])('--device: %s', (_, list, why) => {
  expect(whyNotDevices(list, sysfs)).toBe(why);
});

test('--device: a machine without RDMA devices', () => {
  expect(whyNotDevices('mlx5_0', join(sysfs, 'none'))).toMatch(/^this machine has no RDMA device/);
});

test.each([
  ['an unknown option', ['--devise', 'mlx5_0'], "Unknown option '--devise'"],
  ['a word that is no option', ['mlx5_0'], "Unexpected argument 'mlx5_0'"],
  ['a device and a guest', ['--device', 'mlx5_0', '--link', 'rxe'], '--device and --link'],
  ['a device and a kernel', ['--device', 'mlx5_0', '--kernel', '6.12'], '--device and --kernel'],
  ['an unknown kernel', ['--kernel', '5.10'], "--kernel is 6.1 or 6.12, not '5.10'"],
  ['an unknown driver', ['--link', 'roce'], "--link is rxe or siw, not 'roce'"],
  ['an empty name', ['--device', ','], '--device wants a name'],
])('test:rdma with %s ends with one line and runs nothing', async (_, args, text) => {
  const { code, output } = await new Promise<{ code: unknown; output: string }>((resolve) => {
    execFile(process.execPath, [script('../test/rdma/main.mjs').pathname, ...args], (error, stdout, stderr) =>
      resolve({ code: error?.code, output: stdout + stderr }),
    );
  });
  expect(code).toBe(2);
  expect(output).toContain(text);
  expect(output.trimEnd().split('\n')).toHaveLength(1);
});

const { kernelPackage, kernels } = (await import(script('rdma-kernels.mjs').href)) as {
  kernelPackage: (version: string, release: string) => string;
  kernels: string[];
};

test('--kernel takes the package of this Debian release or of a neighbouring one', () => {
  expect(kernels).toEqual(['6.1', '6.12']);
  expect(kernelPackage('6.1', 'bookworm')).toBe('linux-image-amd64');
  expect(kernelPackage('6.12', 'bookworm')).toBe('linux-image-amd64/bookworm-backports');
  expect(kernelPackage('6.1', 'trixie')).toBe('linux-image-amd64/bookworm');
  expect(kernelPackage('6.12', 'trixie')).toBe('linux-image-amd64');
  expect(kernelPackage('6.12', 'noble')).toBe('linux-image-amd64/trixie');
});
