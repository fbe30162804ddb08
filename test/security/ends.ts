/**
 * Opens servers and channels of one test, which end after it, and a folder for its sockets. The tests of this
 * folder use it.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type Channel,
  type ChannelOptions,
  type Client,
  createChannel,
  createClient,
  createServer,
  type PeerInfo,
  type Server,
  type ServerOptions,
} from 'rdma-rpc';
import { afterEach, beforeEach } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';

/** The objects of this test. The objects are closed, shut down or removed after the test. */
export const ends: { folder: string; readonly servers: Server[]; readonly channels: Channel[] } = {
  folder: '',
  servers: [],
  channels: [],
};

beforeEach(() => {
  ends.folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-security-'));
});
afterEach(async () => {
  for (const channel of ends.channels.splice(0)) await channel.close();
  for (const server of ends.servers.splice(0)) await server.shutdown({ graceMs: 0 });
  rmSync(ends.folder, { recursive: true });
});

/** Returns a separate address for each test. */
export const unixAddress = (): string => `unix:${join(ends.folder, 's')}`;

/** Starts a server that echoes its requests, and returns its log and the callers of its calls. */
export async function serve(options: ServerOptions, address: string) {
  const seen: PeerInfo[] = [];
  const lines: string[] = [];
  const server = createServer({ log: (line) => lines.push(line), ...options });
  server.add(EchoDefinition, {
    echo: (request, { peer }) => {
      seen.push(peer);
      return request;
    },
  });
  ends.servers.push(server);
  return { server, seen, lines, address: await server.listen(address) };
}

/**
 * Starts a server whose `echo` returns the caller's identity, and whose `behave` returns the caller's tokens.
 */
export async function serveWho(options: ServerOptions, address = unixAddress()) {
  const lines: string[] = [];
  const server = createServer({ log: (line) => lines.push(line), ...options });
  server.add(EchoDefinition, {
    echo: (_, { peer }) => ({ text: peer.identity ?? 'nobody' }),
    behave: (_, { metadata }) => ({ text: metadata.getAll('token').join() }),
  });
  ends.servers.push(server);
  return { server, lines, address: await server.listen(address) };
}

export interface Reached {
  readonly channel: Channel;
  readonly client: Client<typeof EchoDefinition>;
}
export function reach(address: string, options: ChannelOptions = {}): Reached {
  const channel = createChannel(address, { backoffMs: 1, ...options });
  ends.channels.push(channel);
  return { channel, client: createClient(EchoDefinition, channel) };
}
