/**
 * Contains helpers that the tests of registries share: servers, channels, and the addresses of a channel. The
 * servers and channels are closed after each test.
 */
import {
  type Channel,
  type ChannelOptions,
  createChannel,
  createClient,
  createServer,
  type Resolver,
} from 'rdma-rpc';
import { afterEach } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';

const ending: (() => unknown)[] = [];
/** Cleanup functions; the test calls the last one first. */
export function afterwards(end: () => unknown): void {
  ending.push(end);
}
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

/** Starts a server that answers with its own address. */
export async function serve(address = '127.0.0.1:0') {
  const server = createServer();
  let own = '';
  server.add(EchoDefinition, { fetch: () => ({ text: own }) });
  own = await server.listen(address);
  afterwards(() => server.shutdown({ graceMs: 0 }));
  return { server, address: own };
}

export function channelTo(resolver: Resolver, options: ChannelOptions = {}) {
  const channel = createChannel(resolver, { resolveMinMs: 0, backoffMs: 50, backoffMaxMs: 200, ...options });
  afterwards(() => channel.close());
  const client = createClient(EchoDefinition, channel);
  /** Resolves to the address of the server that answered. */
  const call = async (): Promise<string> =>
    (await client.fetch({}, { waitForReady: true, timeoutMs: 20_000 })).text ?? '';
  return { channel, call };
}

/** Returns the addresses of a channel in order, with `?` behind stale ones. */
export const known = (channel: Channel): string =>
  channel.addresses
    .map(({ address, stale }) => `${address}${stale ? '?' : ''}`)
    .sort()
    .join(' ');
export const sorted = (...addresses: string[]): string => addresses.sort().join(' ');
