/**
 * Runs `rdma-rpc ping` as a user does, with servers that answer, and servers that stop at each of the steps.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer as createNetServer, type Server as NetServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, type Server, type ServerOptions } from 'rdma-rpc';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { ManyResult } from '../../../cli/ping/many.ts';
import type { PingResult } from '../../../cli/ping/result.ts';
import { Authority } from '../../security/certificates.ts';
import { run } from '../command.ts';
import { expectSchema } from '../schemas.ts';
import { type ServerProcess, serverProcess, start } from './server-process.ts';

const authority = new Authority();
let folder: string;
let ca: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-ping-'));
  ca = join(folder, 'ca.pem');
  writeFileSync(ca, authority.ca);
});
afterAll(() => rmSync(folder, { recursive: true }));

const servers: Server[] = [];
const listeners: NetServer[] = [];
const processes: ServerProcess[] = [];
afterEach(async () => {
  for (const each of processes.splice(0)) each.signal('SIGKILL');
  for (const each of listeners.splice(0)) each.close();
  for (const each of servers.splice(0)) await each.shutdown({ graceMs: 0 });
});

async function serve(options: ServerOptions = {}, address = '127.0.0.1:0'): Promise<string> {
  const made = createServer({ identity: 'demo', log: () => undefined, ...options });
  servers.push(made);
  return made.listen(address);
}

/** Starts a listener that accepts connections and stays silent, and returns its address. */
async function silent(): Promise<string> {
  const made = createNetServer();
  listeners.push(made);
  made.listen(0, '127.0.0.1');
  await once(made, 'listening');
  return `127.0.0.1:${(made.address() as AddressInfo).port}`;
}

async function stoppable(): Promise<ServerProcess> {
  const made = await serverProcess();
  processes.push(made);
  return made;
}

const secured = () => {
  const { cert, key } = authority.issue({ addresses: ['127.0.0.1'] });
  return { tls: { cert, key } };
};

async function json<T>(...args: string[]): Promise<{ code: number; errors: string; result: T }> {
  const { code, out, errors } = await run('ping', ...args, '--json');
  return { code, errors, result: expectSchema('ping', JSON.parse(out) as T) };
}

const quick = ['-c', '2', '-i', '0'];
const stepsOf = ({ steps }: PingResult): string[] => steps.map(({ step }) => step);

describe('a server that answers', () => {
  test.each<[string, ServerOptions, string, string[], string[], string]>([
    ['shm', {}, '127.0.0.1:0', [], ['connect', 'welcome', 'attach', 'fabric', 'answer'], 'none'],
    [
      'tcp',
      { fabric: 'tcp' },
      '127.0.0.1:0',
      [],
      ['connect', 'welcome', 'attach', 'fabric', 'answer'],
      'none',
    ],
    ['shm', {}, 'unix', [], ['connect', 'welcome', 'attach', 'fabric', 'answer'], expect.any(String)],
    [
      'tcp',
      secured(),
      '127.0.0.1:0',
      ['--fabric', 'tcp'],
      ['connect', 'tls', 'welcome', 'attach', 'fabric', 'answer'],
      'bound',
    ],
  ])('shows each step and both round trips over %s (%j, %s, %j)', async (...row) => {
    const [fabric, options, at, args, steps, security] = row;
    const address = await serve(options, at === 'unix' ? `unix:${join(folder, 's')}` : at);
    const tls = options.tls === undefined ? [] : ['--ca', ca];
    const { code, errors, result } = await json<PingResult>(address, ...quick, ...args, ...tls);
    expect([code, errors]).toEqual([0, '']);
    expect(result.address).toBe(address);
    expect(stepsOf(result)).toEqual(steps);
    expect(result.session).toMatchObject({ fabric, security, peer: 'demo' });
    expect(result.rounds).toHaveLength(2);
    expect(result.roundTrips).toMatchObject({ sideband: { count: 2 }, fabric: { count: 2 } });
    const sum = result.steps.reduce((all, { ms }) => all + ms, 0);
    expect(Math.abs(sum - result.totalMs)).toBeLessThan(0.1);
  });

  test('gets a line for each step as it ends, then the session, the rounds and their summary', async () => {
    const address = await serve({ fabric: ['shm', 'tcp'] });
    const { code, out, errors } = await run('ping', address, ...quick);
    expect([code, errors]).toEqual([0, '']);
    const shape = out.replace(/ *\d+\.\d+( ms|\/|)/g, ' N$1').split('\n');
    expect(shape).toEqual([
      'connect N ms  the socket of the sideband connects',
      'welcome N ms  the server answers the hello',
      'attach N ms  both sides make a queue pair: shm',
      'fabric N ms  the queue pair of this side connects: shm',
      'answer N ms  the first ping of the sideband is answered',
      'ready N ms  shm, security none, server demo',
      expect.stringMatching(/^ {2}not verbs: ./),
      '  not tcp: not needed, shm comes first',
      'round 1: sideband N ms, shm N ms',
      'round 2: sideband N ms, shm N ms',
      'sideband: 2 round trips, min/avg/max N/ N/ N ms',
      'shm: 2 round trips, min/avg/max N/ N/ N ms',
      '',
    ]);
  });

  test('may have a name, which is resolved first; an address that refuses is followed by the next one', async () => {
    const address = await serve();
    const { code, result } = await json<PingResult>(address.replace('127.0.0.1', 'localhost'), ...quick);
    expect(code).toBe(0);
    expect(result.steps[0]).toMatchObject({ step: 'resolve', about: expect.stringContaining(address) });
  });

  test('is only connected to with -c 0', async () => {
    const { code, result } = await json<PingResult>(await serve(), '-c', '0');
    expect(code).toBe(0);
    expect(result).toMatchObject({ rounds: [], roundTrips: {} });
    expect(result.steps.at(-1)).toMatchObject({ step: 'answer' });
  });

  test('is no longer pinged after SIGINT, which prints the summary', async () => {
    const pinging = start('ping', await serve(), '-c', '1000', '-i', '60000');
    await pinging.hasPrinted('round 1:');
    pinging.signal('SIGINT');
    const { code, out, errors } = await pinging.ended;
    expect([code, errors]).toEqual([0, '']);
    expect(out).toMatch(/\nshm: 1 round trip, min\/avg\/max /);
  });

  test('is no longer connected to after SIGINT, which names the step', async () => {
    const pinging = start('ping', await silent(), '--timeout', '60000');
    await pinging.hasPrinted('connect ');
    pinging.signal('SIGINT');
    const { code, errors } = await pinging.ended;
    expect(code).toBe(1);
    expect(errors).toMatch(/^error: stopped at welcome: interrupted\n/);
  });

  test('answers even if it denies all calls', async () => {
    const address = await serve({ ...secured(), authorize: () => false });
    const { code, result } = await json<PingResult>(address, ...quick, '--ca', ca);
    expect(code).toBe(0);
    expect(result.rounds).toHaveLength(2);
  });
});

describe('a server that is not reached', () => {
  interface Fault {
    readonly address: () => Promise<string>;
    readonly args?: string[];
    readonly step: string;
    readonly message: RegExp;
    readonly next: RegExp;
    readonly done: string[];
  }
  const gone = async (): Promise<string> => {
    const address = await serve();
    await servers.pop()!.shutdown({ graceMs: 0 });
    return address;
  };
  const limit = ['--timeout', '300'];
  test.each<[string, Fault]>([
    [
      'a name that does not resolve',
      {
        address: async () => 'nobody.invalid',
        step: 'resolve',
        message: /nobody\.invalid|no answer within/,
        next: /DNS/,
        done: [],
      },
    ],
    [
      'a server that is down',
      {
        address: gone,
        step: 'connect',
        message: /ECONNREFUSED/,
        next: /^nobody listens there: start/,
        done: [],
      },
    ],
    [
      'a missing unix socket',
      {
        address: async () => `unix:${join(folder, 'none')}`,
        step: 'connect',
        message: /ENOENT/,
        next: /path/,
        done: [],
      },
    ],
    [
      'a server that sends nothing',
      {
        address: silent,
        args: limit,
        step: 'welcome',
        message: /^no answer within 300 ms/,
        next: /stopped/,
        done: ['connect'],
      },
    ],
    [
      'a server that does not answer TLS',
      {
        address: silent,
        args: [...limit, '--tls'],
        step: 'tls',
        message: /^no answer within 300 ms/,
        next: /stopped/,
        done: ['connect'],
      },
    ],
    [
      'a stopped server',
      {
        address: async () => {
          const { address, signal } = await stoppable();
          signal('SIGSTOP');
          return address;
        },
        args: limit,
        step: 'welcome',
        message: /^no answer within 300 ms/,
        next: /SIGSTOP/,
        done: ['connect'],
      },
    ],
    [
      'a server without TLS',
      {
        address: () => serve(),
        args: ['--tls'],
        step: 'tls',
        message: /does not speak TLS at this address: leave out --tls/,
        next: /log/,
        done: ['connect'],
      },
    ],
    [
      'a server whose certificate is not trusted',
      {
        address: () => serve(secured()),
        args: ['--tls'],
        step: 'tls',
        message: /certificate is not accepted/,
        next: /log/,
        done: ['connect'],
      },
    ],
    [
      'a server that refuses the client',
      {
        address: () =>
          serve({
            authenticate: () => {
              throw new Error('not you');
            },
          }),
        step: 'welcome',
        message: /refused the connection: .*does not accept this client/,
        next: /log/,
        done: ['connect'],
      },
    ],
    [
      'a server without a common fabric',
      {
        address: () => serve({ fabric: 'tcp' }),
        args: ['--fabric', 'shm'],
        step: 'attach',
        message: /no fabric in common \(shm: /,
        next: /rdma-rpc doctor/,
        done: ['connect', 'welcome'],
      },
    ],
  ])(
    '%s is reported with the step and the remedy',
    async (_, { address, args = [], step, message, next, done }) => {
      const { code, errors, result } = await json<PingResult>(await address(), ...args);
      expect(code).toBe(1);
      expect(result.error).toEqual({
        step,
        message: expect.stringMatching(message),
        next: expect.stringMatching(next),
      });
      expect(errors).toContain(`error: stopped at ${step}: `);
      expect(errors).toContain(`→ ${result.error!.next}`);
      expect(stepsOf(result)).toEqual(done);
      expect(result.rounds).toEqual([]);
    },
  );

  test.each([
    ['a server that stops', 'SIGSTOP', /stopped at sideband: no answer over the sideband within 3000 ms/],
    ['a server that dies', 'SIGKILL', /stopped at (sideband|session): the session has ended: /],
  ] as const)(
    '%s between two rounds causes the summary of the earlier rounds, then the error',
    async (...row) => {
      const [, signal, expected] = row;
      const server = await stoppable();
      const pinging = start('ping', server.address, '-c', '1000', '-i', '200', '--timeout', '3000');
      await pinging.hasPrinted('round 1:');
      server.signal(signal);
      const { code, out, errors } = await pinging.ended;
      expect(code).toBe(1);
      expect(errors).toMatch(expected);
      expect(out).toMatch(/\nshm: \d+ round trips?, min\/avg\/max /);
    },
  );

  test('a server that shuts down between two rounds ends the command', async () => {
    const address = await serve();
    const pinging = start('ping', address, '-c', '1000', '-i', '50');
    await pinging.hasPrinted('round 1:');
    await servers.pop()!.shutdown({ graceMs: 0 });
    const { code, errors } = await pinging.ended;
    expect(code).toBe(1);
    expect(errors).toMatch(/the session has ended: .*\n {2}→ the server's log says why/);
  });
});

describe('many connections', () => {
  test('are reported by their rate and the percentiles of each step', async () => {
    const { code, result } = await json<ManyResult>(
      await serve(),
      '--connections',
      '20',
      '--concurrency',
      '3',
    );
    expect(code).toBe(0);
    expect(result).toMatchObject({ connections: 20, failed: 0, errors: [] });
    expect(result.sessionsPerSecond).toBeGreaterThan(0);
    expect(Object.keys(result.steps)).toEqual(['connect', 'welcome', 'attach', 'fabric', 'answer', 'total']);
    for (const { count, p50, p90, p99, max } of Object.values(result.steps)) {
      expect(count).toBe(20);
      expect([p50, p90, p99, max]).toEqual([p50, p90, p99, max].sort((a, b) => a - b));
    }
    expect(servers[0]!.sessions).toHaveLength(0);
  });

  test('have a row for each step in the text', async () => {
    const { code, out } = await run('ping', await serve({ fabric: 'tcp' }), '--connections', '3');
    expect(code).toBe(0);
    expect(out).toMatch(
      /^3 connections in \d+\.\d\d s: \d+ sessions\/s, 0 failed\n {8} +p50 +p90 +p99 +max\n/,
    );
    expect(out.match(/^(connect|welcome|attach|fabric|answer|total) .* ms {2}./gm)).toHaveLength(6);
  });

  test('that fail are counted, and each error is shown once', async () => {
    const address = `127.0.0.1:1`;
    const { code, errors, result } = await json<ManyResult>(address, '--connections', '5');
    expect(code).toBe(1);
    expect(result).toMatchObject({ connections: 5, failed: 5, sessionsPerSecond: 0, steps: {} });
    expect(result.errors).toEqual([expect.objectContaining({ step: 'connect', count: 5 })]);
    expect(errors.match(/stopped at connect: .*ECONNREFUSED.* \(5 connections\)/g)).toHaveLength(1);
  });
});

test.each([
  ['no address', ['a b:c'], /not understood/],
  ['an invalid port', ['127.0.0.1:99999'], /the port is above 65535/],
  ['an unknown fabric', ['127.0.0.1:1', '--fabric', 'carrier-pigeon'], /Allowed choices are/],
  ['an invalid count', ['127.0.0.1:1', '-c', 'many'], /Give a number from 0/],
  ['a missing file', ['127.0.0.1:1', '--ca', '/nowhere/ca.pem'], /--ca \/nowhere/],
])('a command line with %s is refused', async (_, args, expected) => {
  const { code, errors } = await run('ping', ...args);
  expect(code).toBe(2);
  expect(errors).toMatch(expected);
});
