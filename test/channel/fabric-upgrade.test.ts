/**
 * Tests connections over a fabric that is not the first choice. Better fabrics become available later. The
 * test moves the clock.
 */
import { type Duplex, duplexPair } from 'node:stream';
import { createClient } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ClientChannel } from '../../runtime/client/channel.ts';
import { ClientLink } from '../../runtime/client/connections/client-link.ts';
import { SilenceChecks } from '../../runtime/client/connections/silence-checks.ts';
import type { FabricName } from '../../runtime/fabrics.ts';
import { RpcServer } from '../../runtime/server/server.ts';
import { echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { turn, until } from './bed.ts';

const everyMs = 10_000;

/** A channel that prefers shm and accepts sim, and a server whose offer the test sets. */
class Pair {
  /** The fabrics that the server offers to the next connection; undefined while no server listens. */
  offered: readonly FabricName[] | undefined = ['sim'];
  /** The next connections get no answer. */
  mute = false;
  dials = 0;
  readonly handled: string[] = [];
  /** The lines of the channel's log. */
  readonly lines: string[] = [];
  readonly held: (() => void)[] = [];
  readonly channel: ClientChannel;
  readonly #servers: RpcServer[] = [];

  constructor(fabricUpgradeMs?: number) {
    const dial = async (): Promise<Duplex> => {
      ++this.dials;
      const [near, far] = duplexPair();
      if (this.mute) return near;
      if (this.offered === undefined) throw new Error('no listener');
      const server = new RpcServer({ log: () => undefined }, this.offered);
      this.#servers.push(server);
      server
        .add(EchoDefinition, {
          ...echoHandlers({ started: 0, aborted: [] }),
          echo: async (request) => {
            this.handled.push(request.text);
            if (request.text === 'slow') await new Promise<void>((resolve) => this.held.push(resolve));
            return request;
          },
        })
        .accept(far, 'client');
      return near;
    };
    const log = (line: string): void => void this.lines.push(line);
    const options = { log, ...(fabricUpgradeMs !== undefined && { fabricUpgradeMs }) };
    this.channel = new ClientChannel({ address: 'pair', dial, fabrics: ['shm', 'sim'] }, options);
  }

  get fabric(): string | undefined {
    return this.channel.session?.fabric;
  }

  async look(): Promise<void> {
    await vi.advanceTimersByTimeAsync(everyMs);
  }

  /** Breaks the first connection. */
  async lose(): Promise<void> {
    await this.#servers[0]!.shutdown({ graceMs: 0 });
    await until(() => this.channel.state !== 'ready');
  }

  async close(): Promise<void> {
    for (const end of this.held) end();
    await this.channel.close();
    for (const server of this.#servers) await server.shutdown({ graceMs: 0 });
  }
}

/** Advances the clock, and waits until the effects have happened. */
async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
  for (let turns = 0; turns < 20; ++turns) await turn();
}

let pair: Pair;
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  await pair.close();
});

async function connected(fabricUpgradeMs?: number) {
  pair = new Pair(fabricUpgradeMs);
  const client = createClient(EchoDefinition, pair.channel);
  await client.echo({ text: 'first' });
  expect(pair.fabric).toBe('sim');
  return client;
}

describe('fabricUpgradeMs', () => {
  test('by default the channel never looks for a better fabric', async () => {
    await connected();
    pair.offered = ['shm', 'sim'];
    await vi.advanceTimersByTimeAsync(100 * everyMs);
    expect([pair.dials, pair.fabric]).toEqual([1, 'sim']);
  });

  test('later calls use a better fabric; a channel on its first choice looks no more', async () => {
    const client = await connected(everyMs);
    pair.offered = ['shm', 'sim'];
    await vi.advanceTimersByTimeAsync(everyMs - 1);
    expect(pair.dials).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    await until(() => pair.fabric === 'shm');
    expect((await client.echo({ text: 'second' })).text).toBe('second');
    await vi.advanceTimersByTimeAsync(100 * everyMs);
    expect([pair.dials, pair.channel.state]).toEqual([2, 'ready']);
  });

  test('a call in flight ends on its connection, once', async () => {
    const client = await connected(everyMs);
    const slow = client.echo({ text: 'slow' });
    await until(() => pair.held.length === 1);
    pair.offered = ['shm', 'sim'];
    await pair.look();
    await until(() => pair.fabric === 'shm');
    await client.echo({ text: 'beside' });
    pair.held[0]!();
    expect((await slow).text).toBe('slow');
    expect(pair.handled).toEqual(['first', 'slow', 'beside']);
  });

  test.each<[string, Partial<Pick<Pair, 'offered' | 'mute'>>]>([
    ['the server has none', {}],
    ['no listener', { offered: undefined }],
    ['nobody answers', { mute: true }],
  ])('%s: the connection stays, and the next look comes after as long a time', async (_, broken) => {
    const client = await connected(everyMs);
    Object.assign(pair, broken);
    for (let looks = 1; looks <= 3; ++looks) {
      let waitedMs = 0;
      for (; pair.dials === looks; waitedMs += 1000) await pass(1000);
      expect(waitedMs).toBeGreaterThanOrEqual(everyMs);
      expect([pair.fabric, pair.channel.state]).toEqual(['sim', 'ready']);
      await client.echo({ text: 'still' });
    }
  });

  test('a connection that is lost during the attempt is replaced as usual', async () => {
    const client = await connected(everyMs);
    pair.mute = true;
    await pair.look();
    await until(() => pair.dials === 2);
    pair.mute = false;
    pair.offered = ['shm', 'sim'];
    await pair.lose();
    await client.echo({ text: 'again' });
    expect(pair.fabric).toBe('shm');
  });

  test('a connection that comes too late is closed, and is not logged as lost', async () => {
    let first: ClientLink | undefined;
    const done = vi.spyOn(ClientLink.prototype, 'onCallDone').mockImplementation(function (this: ClientLink) {
      first ??= this;
    });
    await connected(everyMs);
    done.mockRestore();
    pair.offered = ['shm', 'sim'];
    const closed = vi.spyOn(ClientLink.prototype, 'close');
    const down = vi.spyOn(ClientLink.prototype, 'onSessionDown');
    // The channel asks for this limit when the second connection is there. Now the server leaves the first.
    vi.spyOn(SilenceChecks.prototype, 'nextLimitMs').mockImplementationOnce(() => {
      first!.drain();
      return everyMs;
    });
    await pair.look();
    await until(() => down.mock.calls.length === 2);
    expect(closed.mock.calls).toContainEqual(['a better fabric came too late']);
    expect(pair.lines.filter((line) => line.includes('lost'))).toEqual([]);
  });

  test('a channel that is closed during the attempt stops it', async () => {
    await connected(everyMs);
    pair.mute = true;
    await pair.look();
    await until(() => pair.dials === 2);
    await pair.channel.close();
    expect(pair.channel.state).toBe('closed');
    await pass(10 * everyMs);
    expect(pair.dials).toBe(2);
  });
});
