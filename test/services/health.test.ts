/**
 * Tests the standard health service: the status of a server and its services, before, during and after
 * changes.
 */
import {
  type Channel,
  createChannel,
  createClient,
  createServer,
  type HandlerContext,
  type Server,
  Status,
} from 'rdma-rpc';
import { addHealth, type Health, HealthDefinition } from 'rdma-rpc/health';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HealthService } from '../../runtime/services/health-service.ts';
import { turn } from '../outcomes.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';

const [SERVING, NOT_SERVING, SERVICE_UNKNOWN] = [1, 2, 3];
let server: Server;
let health: Health;
let channel: Channel;

function clientOf() {
  return createClient(HealthDefinition, channel);
}
beforeEach(async () => {
  server = createServer();
  health = addHealth(server);
  server.add(EchoDefinition, {});
  channel = createChannel(await server.listen('127.0.0.1:0'));
});
afterEach(async () => {
  await channel.close();
  await server.shutdown({ graceMs: 0 });
});

describe('Check', () => {
  test.each<[string, (h: Health) => unknown, string, number]>([
    ['the server as a whole', () => 0, '', SERVING!],
    ['a service of it', () => 0, 'test.echo.Echo', SERVING!],
    [
      'a service that is said not to serve',
      (h) => h.setStatus('test.echo.Echo', 'NOT_SERVING'),
      'test.echo.Echo',
      2,
    ],
    [
      'the server, when one of its services does not serve',
      (h) => h.setStatus('test.echo.Echo', 'NOT_SERVING'),
      '',
      1,
    ],
    ['a name that the application has made up', (h) => h.setStatus('database', 'UNKNOWN'), 'database', 0],
    [
      'a service that serves again',
      (h) => h.setStatus('', 'NOT_SERVING').setStatus('', 'SERVING'),
      '',
      SERVING!,
    ],
  ])('%s', async (_, change, service, status) => {
    change(health);
    expect(await clientOf().check({ service })).toEqual({ status });
  });

  test('a missing service is NOT_FOUND', async () => {
    await expect(clientOf().check({ service: '__proto__' })).rejects.toMatchObject({
      code: Status.NOT_FOUND,
      message: /unknown service __proto__/,
    });
  });
});

test('List returns all services that Check knows', async () => {
  health.setStatus('database', 'NOT_SERVING');
  const { statuses } = await clientOf().list({});
  expect(Object.fromEntries(Object.entries(statuses).map(([name, { status }]) => [name, status]))).toEqual({
    '': SERVING,
    'grpc.health.v1.Health': SERVING,
    'test.echo.Echo': SERVING,
    database: NOT_SERVING,
  });
});

describe('Watch', () => {
  test('returns the current status, and each change once', async () => {
    const seen: number[] = [];
    const wanted = [SERVING, NOT_SERVING, SERVING];
    for await (const { status } of clientOf().watch({ service: 'test.echo.Echo' })) {
      seen.push(status);
      if (seen.length === wanted.length) break;
      // The first status of each pair changes nothing.
      health.setStatus('test.echo.Echo', status === SERVING ? 'SERVING' : 'NOT_SERVING');
      health.setStatus('other', 'UNKNOWN');
      health.setStatus('test.echo.Echo', status === SERVING ? 'NOT_SERVING' : 'SERVING');
    }
    expect(seen).toEqual(wanted);
  });

  test('reports a change that occurs while its reader handles the previous one', async () => {
    const service = new HealthService(server);
    const watch = service.watch({ service: 'busy' }, {
      signal: new AbortController().signal,
    } as HandlerContext);
    const next = async () => (await watch.next()).value;
    expect(await next()).toEqual({ status: SERVICE_UNKNOWN });
    // The reader has not requested the next status yet.
    service.setStatus('busy', 'NOT_SERVING');
    const changed = next();
    await turn();
    expect(service.watchers).toBe(0);
    expect(await changed).toEqual({ status: NOT_SERVING });
    // Two changes that cancel each other out count as none.
    service.setStatus('busy', 'SERVING').setStatus('busy', 'NOT_SERVING');
    const back = next();
    await turn();
    expect(service.watchers).toBe(1);
    service.setStatus('busy', 'SERVING');
    expect(await back).toEqual({ status: SERVING });
    expect(service.watchers).toBe(0);
  });

  test('a service that is added later is SERVICE_UNKNOWN until then', async () => {
    const seen: number[] = [];
    for await (const { status } of clientOf().watch({ service: 'later' })) {
      seen.push(status);
      if (status === SERVING) break;
      health.setStatus('later', 'SERVING');
    }
    expect(seen).toEqual([SERVICE_UNKNOWN, SERVING]);
  });

  test('reports a shutdown, which does not wait for watchers', async () => {
    const seen: number[] = [];
    let ended: Promise<void> | undefined;
    const watch = async (): Promise<void> => {
      for await (const { status } of clientOf().watch({})) {
        seen.push(status);
        ended ??= server.shutdown({ graceMs: 60_000 });
      }
    };
    await expect(watch()).rejects.toMatchObject({ code: Status.UNAVAILABLE, message: /shutting down/ });
    expect(seen).toEqual([SERVING, NOT_SERVING]);
    await ended;
  });

  test('watchers that leave have no effect on others', async () => {
    for (let i = 0; i < 50; ++i) {
      for await (const { status } of clientOf().watch({})) {
        expect(status).toBe(SERVING);
        break;
      }
    }
    while (health.watchers > 0) await new Promise((resolve) => setImmediate(resolve));
    health.setStatus('', 'NOT_SERVING');
    expect(await clientOf().check({})).toEqual({ status: NOT_SERVING });
  });
});

test.each<[string, unknown, unknown]>([
  ['a status that there is not', 'a', 'OK'],
  ['one that only answers have', 'a', 'SERVICE_UNKNOWN'],
  ['a name of the prototype', 'a', 'toString'],
  ['no name', undefined, 'SERVING'],
])('setStatus refuses %s', (_, service, status) => {
  expect(() => health.setStatus(service as never, status as never)).toThrow(
    /give a service's name and SERVING/,
  );
});

test('a server has one health service', () => {
  expect(() => addHealth(server)).toThrow(/added already/);
});
