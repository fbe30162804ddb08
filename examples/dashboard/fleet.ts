/**
 * Counts what a fleet shows in addition to `rdma-rpc/prometheus`: which servers serve, drain and are
 * registered, which clients connect, and how often channels lose their servers. Copy this file into your
 * application, and call its functions once for each server and channel. The fleet page of the dashboard and
 * the alerts read these metrics.
 */
import { Counter, Gauge, type Registry } from 'prom-client';
import type { ChannelStateListener, OnSession, Server } from 'rdma-rpc';
import type { Registration } from 'rdma-rpc/etcd';
import type { HealthSource } from 'rdma-rpc/health';
import { type ChannelAddresses, collectAddresses } from 'rdma-rpc/prometheus';

/**
 * Returns a function for the option `onSession` of a server. It counts connections that were accepted and
 * refused as `fleet_server_connections_total`, with the labels `result` and `fabric`.
 */
export function countConnections(registry: Registry): OnSession {
  const connections = new Counter({
    name: 'fleet_server_connections_total',
    help: 'Connections of clients; their rate without a change of the fleet is that of reconnects',
    labelNames: ['result', 'fabric'],
    registers: [registry],
  });
  return (session) =>
    session.accepted
      ? connections.inc({ result: 'accepted', fabric: session.fabric })
      : connections.inc({ result: 'refused', fabric: '' });
}

export interface ServerParts {
  /** The result of `addHealth`. */
  readonly health: HealthSource;
  /** The result of `register`, where servers register themselves. */
  readonly registration?: Registration;
}

/** Exports the state of a server as gauges that are 0 or 1. */
export function collectServer(
  server: Pick<Server, 'stopping'>,
  { health, registration }: ServerParts,
  registry: Registry,
): void {
  const flag = (name: string, help: string, value: () => boolean): void => {
    new Gauge({
      name: `fleet_server_${name}`,
      help,
      registers: [registry],
      collect() {
        this.set(Number(value()));
      },
    });
  };
  flag('serving', 'The health service says SERVING', () => health.statusOf('') === 'SERVING');
  flag('draining', 'The shutdown of the server has begun', () => server.stopping);
  if (registration !== undefined)
    flag('registered', 'The server is in the list of the registry', () => registration.registered);
}

/** The part of a channel that this file uses. */
interface WatchedChannel extends ChannelAddresses {
  on(event: 'state', listener: ChannelStateListener): unknown;
}

/**
 * Exports the addresses of a channel, and counts how often the channel has lost all its servers as
 * `fleet_channel_losses_total`. `name` is the label `channel`.
 */
export function collectChannel(channel: WatchedChannel, name: string, registry: Registry): void {
  collectAddresses(channel, { registry, name });
  const known = registry.getSingleMetric('fleet_channel_losses_total') as Counter<'channel'> | undefined;
  const losses =
    known ??
    new Counter({
      name: 'fleet_channel_losses_total',
      help: 'How often a channel had a connection and then none',
      labelNames: ['channel'],
      registers: [registry],
    });
  losses.inc({ channel: name }, 0);
  let connected = channel.state === 'ready';
  channel.on('state', (state) => {
    if (connected && (state === 'connecting' || state === 'failing')) losses.inc({ channel: name });
    // A channel that verifies a connection has not lost it.
    connected = state === 'ready' || state === 'verifying';
  });
}
