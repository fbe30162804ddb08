/**
 * A device that is taken from the machine and put back, in a guest. The kernel waits until nobody has it
 * open: soft-RoCE and soft-iWARP cannot take themselves from under their users, so `rdma link delete` hangs
 * where somebody forgets to let go, and a device of that name cannot be added again.
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

/** Soft-RoCE or soft-iWARP; nothing outside of a guest, where devices are not ours to remove. */
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
    // And once more, with nobody there: the server hears of it, too.
    await remove(serverDevice);
    await put(serverDevice);
    expect((await client.echo({ number: 5 })).number).toBe(5);
  });

  test('an idle client with a lease lets it go, and the lease stays', async () => {
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
    // Memory like any other now: it can be sent over the device that came back.
    const { payload } = await client.echo({ payload: lease.bytes });
    expect(same(payload, new Uint8Array(100_000).fill(3))).toBe(true);
  });

  test('where there is another fabric, too, the next connection takes that', async () => {
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

  test('a process that has used it once and has closed everything does not hold it', async () => {
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
