/**
 * The application has filled the arena. Calls that need memory wait, and other calls continue. The error of a
 * call that waits too long names the missing resource.
 */
import { allocBuffer, configure, createClient, type Lease, leaseOf, Status } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { EchoDefinition, type EchoMessage } from '../runtime/gen/echo.rdma.ts';
import { openWorld, type World } from '../runtime/world.ts';

const KiB = 1024;
const arenaBytes = 8 * 1024 * KiB;

/** Text is encoded in the arena, unlike bytes, which are sent in place. */
const text = 'x'.repeat(600 * KiB);
const names = /leases.*leaseOf\(message\)\?\.release\(\).*arenaBytes/s;

let world: World;
let leases: Lease[] = [];
beforeEach(async () => {
  // Each test has its own context, because an unused context closes when the configuration changes.
  configure({ arenaBytes });
  world = await openWorld('shm over unix');
});
afterEach(async () => {
  for (const lease of leases) lease.release();
  leases = [];
  await world.close();
});

/** Fills the arena completely. */
function fill(): void {
  for (let bytes = 1024 * KiB; bytes > 4 * KiB; bytes /= 2) {
    try {
      for (;;) leases.push(allocBuffer(bytes - 4 * KiB, world.channel));
    } catch (error) {
      expect(error).toMatchObject({
        code: Status.RESOURCE_EXHAUSTED,
        message: expect.stringMatching(/release\(\)/),
      });
    }
  }
}

describe('a request that must be copied while the arena is full', { timeout: 60_000 }, () => {
  test('waits until there is room, and small calls continue', async () => {
    const client = createClient(EchoDefinition, world.channel);
    await client.echo({});
    fill();
    let settled = 0;
    const calls = Array.from({ length: 5 }, async (_, number) => {
      const answer = await client.fetch({ text, number });
      ++settled;
      return answer.payload.length;
    });
    for (let i = 0; i < 50; ++i) expect(await client.echo({ number: i })).toMatchObject({ number: i });
    expect(settled).toBe(0);
    for (const lease of leases) lease.release();
    expect(await Promise.all(calls)).toEqual([0, 1, 2, 3, 4]);
  });

  test('ends at its deadline, or when it is cancelled, with an error that names the exhausted resource', async () => {
    const client = createClient(EchoDefinition, world.channel);
    await client.echo({});
    fill();
    await expect(client.echo({ text }, { timeoutMs: 50 })).rejects.toMatchObject({
      code: Status.DEADLINE_EXCEEDED,
      processed: 'no',
      message: expect.stringMatching(names),
    });
    const signal = AbortSignal.timeout(50);
    await expect(client.echo({ text }, { signal })).rejects.toMatchObject({
      code: Status.CANCELLED,
      processed: 'no',
    });
    await world.channel.close();
  });

  test.each([
    ['some of it', 1024 * KiB],
    ['more than there is of it at all', arenaBytes + 1024 * KiB],
  ])(
    'names the bytes that it needs of the arena, not those that go from where they are: %s',
    async (_, payloadBytes) => {
      const client = createClient(EchoDefinition, world.channel);
      await client.echo({});
      fill();
      const request = { payload: new Uint8Array(payloadBytes) };
      const error = await client.echo(request, { timeoutMs: 50 }).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ processed: 'no', message: expect.stringMatching(names) });
      const [, bytes] = /it waited for (\d+) bytes of the arena/.exec(String(error)) ?? [];
      expect(Number(bytes)).toBeGreaterThan(0);
      expect(Number(bytes)).toBeLessThan(4 * KiB);
    },
  );

  test('ends with its channel', async () => {
    const client = createClient(EchoDefinition, world.channel);
    await client.echo({});
    fill();
    const call = client.echo({ text });
    const ended = expect(call).rejects.toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
    await client.echo({});
    await world.channel.close();
    await ended;
  });

  test('does not wait for ever', async () => {
    const client = createClient(EchoDefinition, world.channel);
    await client.echo({});
    fill();
    await expect(client.echo({ text })).rejects.toMatchObject({
      code: Status.RESOURCE_EXHAUSTED,
      processed: 'no',
      message: expect.stringMatching(names),
    });
  });
});

describe('an application that keeps large messages', { timeout: 60_000 }, () => {
  // This test comes first. The client's test leaves messages to the garbage collector, which could otherwise
  // free memory in the middle of this test.
  test('on a server causes an error that the caller gets', async () => {
    const client = createClient(EchoDefinition, world.channel);
    await client.echo({});
    // This size leaves room for the bytes around the payload, which is sent in place.
    const around = allocBuffer(1, world.channel);
    fill();
    around.release();
    const payload = new Uint8Array(700 * KiB);
    await expect(client.echo({ payload }, { timeoutMs: 300 })).rejects.toMatchObject({
      code: Status.DEADLINE_EXCEEDED,
      processed: 'no',
      message: expect.stringMatching(/the server's arena.*release\(\).*arenaBytes/s),
    });
  });

  test('on a client is named in the error of a call, and once in a warning', async () => {
    const warnings: string[] = [];
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation((warning) => {
      warnings.push(String(warning));
    });
    const client = createClient(EchoDefinition, world.channel);
    await client.echo({});
    // This size leaves room for the bytes around the payload of a response, which is sent in place.
    const around = [allocBuffer(1, world.channel), allocBuffer(1, world.channel)];
    fill();
    for (const lease of around) lease.release();
    const call = () => client.fetch({ number: 700 * KiB }, { timeoutMs: 500 });
    const told = async () => call().catch((error: unknown) => String(error));
    // The server's clock may reach the deadline first.
    for (let i = 0; i < 2; i++) await expect.poll(told, { timeout: 20_000 }).toMatch(names);
    warned.mockRestore();
    expect(warnings.filter((warning) => /calls wait for memory.*release\(\)/s.test(warning))).toHaveLength(1);
    for (const lease of leases) lease.release();
    const answer = await client.fetch({ number: 700 * KiB });
    expect(answer.payload.length).toBe(700 * KiB);
    leaseOf(answer)?.release();
  });
});

describe('answers that an application keeps', { timeout: 60_000 }, () => {
  test('are views of the arena up to half of it, and copies beyond that, so that no call waits', async () => {
    const client = createClient(EchoDefinition, world.channel);
    const kept: EchoMessage[] = [];
    for (let i = 0; i < 40; i++) kept.push(await client.fetch({ number: 700 * KiB }));
    const lent = kept.filter((answer) => leaseOf(answer) !== undefined);
    expect(lent.length).toBeLessThan(8);
    for (const { payload } of kept) expect(payload.length).toBe(700 * KiB);
    // When the application returns messages, it immediately gets others.
    for (const answer of lent) leaseOf(answer)!.release();
    await expect
      .poll(async () => leaseOf(await client.fetch({ number: 700 * KiB })) !== undefined)
      .toBe(true);
  });
});
