/**
 * Servers and channels of one test each, ended after it, and a folder for its sockets. For the tests of this
 * folder.
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

/** Of this test: whatever is in there is closed, shut down or removed after it. */
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

/** An address of its own for each test. */
export const unixAddress = (): string => `unix:${join(ends.folder, 's')}`;

/** A server that sends back what comes, its log, and whom calls of it came from. */
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

/** A server whose echo says who calls, and whose `behave` says with which tokens. */
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
