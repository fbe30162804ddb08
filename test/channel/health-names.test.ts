/**
 * A service configuration names another service for the health check while the channel is in use. The streams
 * of the channel itself are not counted as calls of the application.
 */
import { createClient, type ServerAddress } from 'rdma-rpc';
import { addHealth, healthCheck } from 'rdma-rpc/health';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Bed, until } from './bed.ts';

let bed: Bed;
beforeEach(() => {
  bed = new Bed();
});
afterEach(() => bed.close());

const named = (address: string, serviceName: string): ServerAddress => ({
  address,
  attributes: { serviceConfig: JSON.stringify({ healthCheckConfig: { serviceName } }) },
});

test('a connection whose check has asked for several services is idle without calls', async () => {
  bed.start('a:1');
  const health = addHealth(bed.at('a:1').server);
  for (const name of ['x', 'y', 'z']) health.setStatus(name, 'NOT_SERVING');
  health.setStatus('last', 'SERVING');
  let push!: (servers: readonly ServerAddress[]) => void;
  const resolver = {
    resolve: async () => [named('a:1', 'x')],
    watch: (onChange: typeof push) => {
      push = onChange;
      return () => undefined;
    },
  };
  const channel = bed.channel(resolver, { healthCheck: healthCheck() });
  const state = (): string => channel.addresses.map((each) => each.state).join(' ');
  channel.ready().catch(() => undefined);
  await until(() => state() === 'unhealthy');
  for (const name of ['y', 'z', 'last']) {
    push([named('a:1', name)]);
    await until(() => state() === (name === 'last' ? 'ready' : 'unhealthy'));
  }
  expect((await createClient(EchoDefinition, channel).fetch({})).text).toBe('a:1');
  // A connection that is not idle keeps the process alive.
  await until(() => channel.link?.busy === false);
  expect(channel.link?.load).toBe(0);
});
