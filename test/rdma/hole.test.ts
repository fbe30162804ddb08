/**
 * A path silently drops packets of one connection: those of a session's data connection, while the session's
 * sideband connection works. The path drops packets in one direction or the other, or only large packets.
 * Firewalls that have forgotten a connection drop packets in this way, and so do tunnels with a smaller MTU.
 * The test needs root and `ip`, like netem.test.ts, but no RDMA device.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { type Channel, type Client, leaseOf, Status } from 'rdma-rpc';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { Cable, run } from './cable.ts';
import { caught, endAll, pattern, reach, same } from './pair.ts';

const serverPort = 7001;
const cable = new Cable('path', 1, serverPort);
/**
 * This is longer than the 60 s after which the kernel itself ends a connection, so a call that ends earlier
 * has another reason.
 */
const callMs = 90_000;
const large = 100_000;

const missing = cable.whyNot('ip rule add ipproto tcp sport 7 blackhole');
const why = missing === '' ? '' : `it needs network namespaces, veth and rules of routing: ${missing}`;

/** Local ports of the sideband connections of this process. */
const controlPorts = new Set<number>();
const onSocket = (message: unknown): void => {
  const { socket } = message as { socket: Socket };
  socket.once('connect', () => controlPorts.add(socket.localPort!));
};

beforeAll(async () => {
  subscribe('net.client.socket', onSocket);
  if (why !== '') return;
  await cable.start();
  // Moves the rule for packets to this host back, so that another rule can come before it.
  cable.atServer('ip', 'rule', 'add', 'pref', '100', 'table', 'local');
  cable.atServer('ip', 'rule', 'del', 'pref', '0');
});
afterAll(async () => {
  unsubscribe('net.client.socket', onSocket);
  await cable.end();
});

const mends: (() => void)[] = [];
const mend = (): void => {
  for (const each of mends.splice(0)) each();
};
afterEach(async (context) => {
  mend();
  await endAll(context);
});

function open(): { client: Client<typeof EchoDefinition>; channel: Channel } {
  return reach(cable.address, { fabric: 'tcp', timeoutMs: callMs });
}

async function echoes(client: Client<typeof EchoDefinition>, bytes: number): Promise<boolean> {
  const payload = pattern(bytes, bytes);
  // The first handshake in a guest on a busy host may take longer than a server's time limit for handshakes.
  const reply = await client.echo({ payload }, { waitForReady: true });
  const right = same(reply.payload, payload);
  leaseOf(reply)?.release();
  return right;
}

/** Returns the local port of this process's data connection to the server. */
function dataPort(): number {
  const established = '01';
  const [port, ...others] = readFileSync('/proc/self/net/tcp', 'latin1')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , remote, state]) => state === established && portOf(remote!) === serverPort)
    .map(([, local]) => portOf(local!))
    .filter((local) => !controlPorts.has(local));
  expect(others).toEqual([]);
  return port!;
}
const portOf = (place: string): number => Number.parseInt(place.slice(place.indexOf(':') + 1), 16);

/**
 * Drops the incoming or the outgoing packets of that client port in the server's namespace from now on.
 */
const swallow = {
  'to the server': (port: number): void => throwAway('iif', cable.far, 'ipproto', 'tcp', 'sport', `${port}`),
  'to the client': (port: number): void => throwAway('iif', 'lo', 'ipproto', 'tcp', 'dport', `${port}`),
} as const;
function throwAway(...what: string[]): void {
  const rule = ['pref', '1', ...what, 'blackhole'];
  cable.atServer('ip', 'rule', 'add', ...rule);
  mends.push(() => cable.atServer('ip', 'rule', 'del', ...rule));
}

/** Each function drops packets longer than the given MTU in one direction. */
const shrink = {
  'to the server': (mtu: number): void => {
    run('ip', 'link', 'set', cable.near, 'gso_max_segs', '1');
    cable.atServer('ip', 'link', 'set', cable.far, 'mtu', `${mtu}`);
  },
  'to the client': (mtu: number): void => {
    cable.atServer('ip', 'link', 'set', cable.far, 'gso_max_segs', '1');
    run('ip', 'link', 'set', cable.near, 'mtu', `${mtu}`);
  },
} as const;

const ways = ['to the server', 'to the client'] as const;
const silent = /the data connection from 10\.78\.1\.\d:\d+ to 10\.78\.1\.\d:\d+ loses what is sent/;

describe('a data connection that loses', () => {
  beforeEach(({ skip }) => skip(why !== '', why));

  test.each(ways)(
    'all packets %s: its calls fail and name the path, and later calls use another connection',
    async (way) => {
      const { client, channel } = open();
      expect(await echoes(client, 100)).toBe(true);
      swallow[way](dataPort());
      const errors = await Promise.all([100, 100, large].map((bytes) => caught(echoes(client, bytes))));
      for (const error of errors) {
        expect(error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'maybe' });
        expect(error.message).toMatch(silent);
      }
      expect(await echoes(client, large)).toBe(true);
      expect(channel.state).toBe('ready');
    },
  );

  // When the answers are dropped, the server detects it.
  test.each([
    ['to the server', `to ${cable.address}`],
    ['to the client', `from ${cable.address}`],
  ] as const)(
    'large packets %s: small calls work, and large ones do once the path is repaired',
    async (way, named) => {
      const { client } = open();
      expect(await echoes(client, large)).toBe(true);
      mends.push(() => shrink[way](1500));
      shrink[way](1200);
      expect(await echoes(client, 100)).toBe(true);
      const { message } = await caught(echoes(client, large));
      expect(message).toMatch(silent);
      expect(message).toContain(named);
      mend();
      expect(await echoes(client, large)).toBe(true);
    },
  );
});
