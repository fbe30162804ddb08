/**
 * Tests the choice of fabric and device on a machine with RDMA devices: the fabric that `auto` takes, and the
 * error for a fabric or device that is unavailable.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { createServer, Status } from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { loadNative } from '../../runtime/native/native.ts';
import { littleLockedMemory, whyNotLittle } from './little-memory.ts';
import {
  caught,
  clientDevice,
  endAll,
  over,
  pattern,
  reach,
  same,
  serverDevice,
  sharedServer,
  startServer,
} from './pair.ts';

afterEach(endAll);

const auto = { RDMA_RPC_FABRIC: 'auto' };

describe('auto', () => {
  test('takes shared memory on one host', async () => {
    const server = await startServer(undefined, { env: auto });
    const lines: string[] = [];
    const log = (line: string) => void lines.push(line);
    const { channel } = reach(server.address, { ...over(clientDevice, { fabric: 'auto' }), log });
    await channel.ready();
    expect(lines).toEqual([
      expect.stringMatching(
        /fabric shm \(window\) chosen; verbs: not needed, shm comes first; tcp: not needed, shm comes first$/,
      ),
    ]);
  });

  test('takes verbs when the processes cannot share memory, and says why', async () => {
    const inNamespace = {
      execPath: 'unshare',
      execArgv: ['--pid', '--fork', '--kill-child', process.execPath],
    };
    const server = await startServer(undefined, { env: auto, ...inNamespace });
    const lines: string[] = [];
    const log = (line: string) => void lines.push(line);
    const { channel, client } = reach(server.address, { ...over(clientDevice, { fabric: 'auto' }), log });
    expect((await client.echo({ number: 7 })).number).toBe(7);
    expect(channel.session).toMatchObject({ fabric: 'verbs', device: clientDevice });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(`fabric verbs (${clientDevice} port 1, ${channel.session?.exposure}) chosen`);
    expect(lines[0]).toMatch(/; shm: the processes are in two pid namespaces of one host/);
  });
});

describe('IPv6', () => {
  const { RDMA_VM } = process.env;
  const device = `${RDMA_VM}1`;
  // Server and client both take the device that has the address of their socket.
  const env = { RDMA_RPC_DEVICE: '' };

  test.skipIf(RDMA_VM === undefined).each([
    ['a global address', '[fd77::2]:0', /^\[fd77::2\]:\d+$/],
    ['a link-local address', '[fe80::ff:fe77:2%v1]:0', /^\[fe80::ff:fe77:2%v1\]:\d+$/],
  ])('%s leads to its device', async (_, address, bound) => {
    const server = await startServer(address, { env });
    expect(server.address).toMatch(bound);
    const { channel, client } = reach(server.address, { fabric: 'verbs' });
    const payload = pattern(300_000, 4);
    const answer = await client.echo({ payload });
    expect(same(answer.payload, payload)).toBe(true);
    expect(channel.session).toMatchObject({ fabric: 'verbs', device });
  });
});

describe('an error names what is missing', () => {
  const there = sharedServer();

  test.each([
    ['device', { device: 'nobodys0' }, /nobodys0/],
    ['port', { device: serverDevice, port: 7 }, /port/],
    ['GID', { device: serverDevice, gidIndex: 200 }, /GID.*200/],
  ])('a %s that does not exist', async (_, verbs, message) => {
    const server = createServer({ fabric: 'verbs', verbs });
    await expect(server.listen('127.0.0.1:0')).rejects.toThrow(message);
    await server.shutdown();
    const { channel } = reach(there().address, { fabric: 'verbs', verbs });
    const error = await caught(channel.ready());
    expect(error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no', message });
  });
});

describe('devices', () => {
  test('the report contains the devices that the tests use', () => {
    const { devices, whyNone } = loadNative().verbsDevices(0);
    expect(whyNone).toBe('');
    for (const name of [clientDevice, serverDevice]) {
      const device = devices.find((each) => each.name === name);
      expect(device).toMatchObject({ whyNot: '', ports: [{ number: 1 }] });
      expect(device?.ports[0]?.gids.length).toBeGreaterThan(0);
    }
  });

  const command = [
    process.execPath,
    fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url)),
    'devices',
  ];
  const start = ([program, ...args]: readonly string[]) => spawnSync(program!, args, { encoding: 'utf8' });

  test.skipIf(whyNotLittle !== '')(
    `a low limit for locked memory is reported with a remedy${whyNotLittle && ` (${whyNotLittle})`}`,
    () => {
      const { status, stdout, stderr } = start([...littleLockedMemory, ...command]);
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      expect(stdout).toMatch(/^locked memory: 65536 bytes$/m);
      for (const name of [clientDevice, serverDevice]) {
        const line = stdout.split('\n').find((each) => each.startsWith(`${name} (`));
        // A device that reports only ENOMEM may have reached its own limit of regions instead.
        expect(line).toMatch(
          /: cannot be used: .*; locked memory is limited to 65536 bytes \(raise it with ulimit -l, or LimitMEMLOCK of its service\)(; this process has 0 of the \d+ that the device allows all processes together \(max_mr\))?$/,
        );
      }
    },
  );

  test('the command prints the report', () => {
    const run = (...args: string[]) => start([...command, ...args]);
    const { status, stdout, stderr } = run();
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(new RegExp(`^${clientDevice} \\(.+\\): can be used$`, 'm'));
    const report = JSON.parse(run('--json').stdout) as { devices: { name: string }[] };
    expect(report.devices.map(({ name }) => name)).toContain(serverDevice);
  });
});
