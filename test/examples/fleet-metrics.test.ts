/**
 * Tests the counts of examples/dashboard/fleet.ts: the losses of a channel, and connections by their result.
 */
import { EventEmitter } from 'node:events';
import { Registry } from 'prom-client';
import type { AcceptedSession, ChannelState, RefusedSession } from 'rdma-rpc';
import { expect, test } from 'vitest';
import { collectChannel, collectServer, countConnections } from '../../examples/dashboard/fleet.ts';

/** A channel that only has states. */
class States extends EventEmitter {
  readonly address = 'a';
  readonly addresses = [];
  state: ChannelState = 'idle';

  pass(...states: ChannelState[]): void {
    for (const state of states) {
      this.state = state;
      this.emit('state', state, undefined);
    }
  }
}

const value = async (registry: Registry, name: string): Promise<string | undefined> =>
  (await registry.metrics()).split('\n').find((line) => line.startsWith(name));

test.each<[ChannelState[], number]>([
  [['connecting', 'failing', 'connecting', 'failing'], 0],
  [['connecting', 'ready', 'idle', 'connecting', 'ready'], 0],
  [['connecting', 'ready', 'verifying', 'ready', 'closed'], 0],
  [['connecting', 'ready', 'failing', 'connecting', 'failing', 'connecting', 'ready'], 1],
  [['connecting', 'ready', 'connecting', 'ready', 'verifying', 'failing'], 2],
])('%j: %i', async (states, losses) => {
  const registry = new Registry();
  const channel = new States();
  collectChannel(channel, 'first', registry);
  const second = new States();
  collectChannel(second, 'second', registry);
  channel.pass(...states);
  expect(await value(registry, 'fleet_channel_losses_total{channel="first"}')).toMatch(` ${losses}`);
  expect(await value(registry, 'fleet_channel_losses_total{channel="second"}')).toMatch(' 0');
});

test('connections are counted by result and fabric', async () => {
  const registry = new Registry();
  const onSession = countConnections(registry);
  onSession({ accepted: true, fabric: 'tcp' } as AcceptedSession);
  onSession({ accepted: true, fabric: 'tcp' } as AcceptedSession);
  onSession({ accepted: false } as RefusedSession);
  const name = 'fleet_server_connections_total';
  expect(await value(registry, `${name}{result="accepted",fabric="tcp"}`)).toMatch(' 2');
  expect(await value(registry, `${name}{result="refused",fabric=""}`)).toMatch(' 1');
});

test('the state of a server is 0 or 1, and only registered servers have all of it', async () => {
  const registry = new Registry();
  const server = { stopping: false };
  collectServer(
    server,
    { health: { statusOf: () => (server.stopping ? 'NOT_SERVING' : 'SERVING') } },
    registry,
  );
  expect(await value(registry, 'fleet_server_serving')).toBe('fleet_server_serving 1');
  expect(await value(registry, 'fleet_server_draining')).toBe('fleet_server_draining 0');
  server.stopping = true;
  expect(await value(registry, 'fleet_server_serving')).toBe('fleet_server_serving 0');
  expect(await value(registry, 'fleet_server_draining')).toBe('fleet_server_draining 1');
  expect(await value(registry, 'fleet_server_registered')).toBeUndefined();
});
