/**
 * Client and server in one process without sockets, for tests of services and clients. Messages are encoded,
 * sent and decoded by the same code as between processes. They are sent over the simulated device of the
 * addon, or by TypeScript code (runtime/loopback) when the addon cannot be loaded.
 */
import { duplexPair } from 'node:stream';
import { ClientChannel } from './client/channel.ts';
import { type ChannelOptions, channelRules } from './client/channel-options.ts';
import type { Channel } from './client/channel-type.ts';
import { Turns } from './client/connections/turns.ts';
import { type FabricOptions, fabricRules } from './control/fabric-options.ts';
import { ownIdentity, type Vouched } from './control/peer-identity.ts';
import { checkNames } from './core/options.ts';
import { nativeIfLoads } from './native/native.ts';
import { RpcServer } from './server/server.ts';
import { type ServerOptions, serverRules } from './server/server-options.ts';
import type { Server } from './server/server-type.ts';

type InProcessFabric = 'sim' | 'loopback';

/**
 * The options of server and channel, without the options for fabrics: the channel chooses its fabric itself.
 */
export type InProcessOptions = Omit<ServerOptions & ChannelOptions, keyof FabricOptions>;

/** The server of an in-process channel. It has no address, so clients reach it only over that channel. */
export interface InProcessServer extends Server {
  /** Always rejects, because the server has no address. */
  listen(address: string): Promise<never>;
}

class ServerWithoutAddress extends RpcServer implements InProcessServer {
  override listen(address: string): Promise<never> {
    const text = `listen ${address}: the server of createInProcessChannel has no address; use createServer()`;
    return Promise.reject(new Error(text));
  }
}

function subset(options: object, rules: object): object {
  return Object.fromEntries(Object.entries(options).filter(([name]) => name in rules));
}

/**
 * Returns a channel to a new server. `register` adds services to the server, and may keep the server, for
 * example to call `shutdown` later. Only `listen` rejects. Closing the channel shuts the server down. The
 * options are the options of server and channel. An option that servers and channels share applies to both
 * ends.
 */
export function createInProcessChannel(
  register: (server: InProcessServer) => void,
  options: InProcessOptions = {},
): Channel {
  return inProcessChannel(register, options, nativeIfLoads() === undefined ? 'loopback' : 'sim');
}

/**
 * Does the same as createInProcessChannel(), on the fabric that the caller names. Tests run on both fabrics.
 */
export function inProcessChannel(
  register: (server: InProcessServer) => void,
  options: InProcessOptions,
  fabric: InProcessFabric,
): Channel {
  checkNames('createInProcessChannel', options, [
    ...new Set(
      [...Object.keys(serverRules), ...Object.keys(channelRules)].filter((name) => !(name in fabricRules)),
    ),
  ]);
  if (typeof register !== 'function')
    throw new TypeError('createInProcessChannel: give a function that adds services to the server');
  const server = new ServerWithoutAddress(subset(options, serverRules), [fabric]);
  register(server);
  const address = 'in-process';
  return new ClientChannel(
    {
      address,
      turns: new Turns(),
      fabrics: [fabric],
      dial: () => {
        const [near, far] = duplexPair();
        // The other end is this process, so its identity is known.
        const vouched: Vouched = { verified: ownIdentity() };
        server.accept(Object.assign(far, vouched), address);
        return Promise.resolve(Object.assign(near, vouched));
      },
      onClosed: () => server.shutdown({ graceMs: 0 }),
    },
    subset(options, channelRules),
  );
}
