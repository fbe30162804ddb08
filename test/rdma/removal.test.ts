/**
 * Tests a device that is removed from the machine and added again, in a guest. The kernel waits until no
 * process has the device open, because soft-RoCE and soft-iWARP cannot be removed while they are in use.
 * Therefore `rdma link delete` hangs if a process forgets to close the device, and the device cannot be added
 * again.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { allocBuffer, type Lease, stats } from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import {
  clientDevice,
  endAll,
  over,
  pattern,
  reach,
  same,
  serverDevice,
  startServer,
  until,
} from './pair.ts';

/** 'rxe' or 'siw' in a guest; empty elsewhere, where tests must not remove devices. */
const driver = process.env.RDMA_VM ?? '';
const whyNot = driver === '' ? 'not run: only in a guest' : '';

const rdma = (...args: string[]) => promisify(execFile)('rdma', args, { timeout: 45_000 });
const remove = (device: string) => rdma('link', 'delete', device);
const put = (device: string) =>
  rdma('link', 'add', device, 'type', driver, 'netdev', `v${device.slice(driver.length)}`);

const leases: Lease[] = [];
afterEach(async (context) => {
  for (const lease of leases.splice(0)) lease.release();
  await endAll(context);
  const { stdout } = await rdma('link', 'show');
  if (driver !== '')
    for (const device of [clientDevice, serverDevice]) if (!stdout.includes(`${device}/`)) await put(device);
});

describe.skipIf(whyNot !== '')(`a device that is removed and added again${whyNot && ` (${whyNot})`}`, () => {
  test('a server whose device is removed under load continues when the device returns', async () => {
    const server = await startServer();
    const { client } = reach(server.address);
    const payload = pattern(300_000, 1);
    let over = false;
    let served = 0;
    const load = Array.from({ length: 8 }, async (_, i) => {
      while (!over) {
        await client.echo(i % 2 === 0 ? { number: i } : { payload }).then(
          () => ++served,
          () => undefined,
        );
      }
    });
    await until(
      () => served,
      (calls) => calls > 20,
    );
    await remove(serverDevice);
    const before = served;
    await put(serverDevice);
    await until(
      () => served,
      (calls) => calls > before + 20,
    );
    over = true;
    await Promise.all(load);
    // Removes the device once more, without clients. The server detects that, too.
    await remove(serverDevice);
    await put(serverDevice);
    expect((await client.echo({ number: 5 })).number).toBe(5);
  });

  test('an idle client with a lease closes the device, and the lease stays valid', async () => {
    const server = await startServer();
    const { client, channel } = reach(server.address);
    await client.echo({});
    const lease = allocBuffer(100_000, channel);
    leases.push(lease);
    lease.bytes.set(pattern(100_000, 7));
    await remove(clientDevice);
    expect(same(lease.bytes, pattern(100_000, 7))).toBe(true);
    lease.bytes.fill(3);
    await put(clientDevice);
    // The lease is ordinary memory now, and can be sent over the re-added device.
    const { payload } = await client.echo({ payload: lease.bytes });
    expect(same(payload, new Uint8Array(100_000).fill(3))).toBe(true);
  });

  test('the next connection uses another fabric where there is one', async () => {
    const server = await startServer(undefined, { env: { RDMA_RPC_FABRIC: 'verbs,tcp' } });
    const { client, channel } = reach(server.address, over(clientDevice, { fabric: ['verbs', 'tcp'] }));
    await client.echo({});
    expect(channel.session?.fabric).toBe('verbs');
    await remove(clientDevice);
    const echoed = (number: number) =>
      client.echo({ number }).then(
        (answer) => answer.number,
        () => 0,
      );
    await until(
      () => echoed(7),
      (number) => number === 7,
    );
    expect(channel.session?.fabric).toBe('tcp');
    await put(clientDevice);
  });

  test('a process that has used the device and closed everything does not keep it open', async () => {
    const server = await startServer();
    const { client, channel } = reach(server.address, over(clientDevice));
    await client.echo({});
    await channel.close();
    await until(
      () => stats('verbs').queuePairs,
      (pairs) => pairs === 0,
    );
    await remove(clientDevice);
    await put(clientDevice);
    const again = reach(server.address, over(clientDevice));
    expect((await again.client.echo({ number: 6 })).number).toBe(6);
  });
});
