/**
 * Client and server in one process without sockets: messages are encoded, sent and decoded by the same code
 * as between processes, on the simulated device of the addon, or, where that cannot be loaded, in TypeScript
 * (runtime/loopback). Meant for tests of services and clients.
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

/** The fabric is chosen by the channel. */
export type InProcessOptions = Omit<ServerOptions & ChannelOptions, keyof FabricOptions>;

/** The server of an in-process channel. It has no address: clients reach it over that channel alone. */
export interface InProcessServer extends Server {
  /** Always rejects. */
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
 * A channel to a server that `register` adds services to. `register` gets the whole server, so that a test
 * can keep it, for example to call `shutdown` on it; `listen` alone rejects. Closing the channel shuts the
 * server down. Options are those of server and channel; a limit that both have applies to both.
 */
export function createInProcessChannel(
  register: (server: InProcessServer) => void,
  options: InProcessOptions = {},
): Channel {
  return inProcessChannel(register, options, nativeIfLoads() === undefined ? 'loopback' : 'sim');
}

/** Like createInProcessChannel(), but the caller names the fabric. Tests run on both. */
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
        // The other end is this process itself.
        const vouched: Vouched = { verified: ownIdentity() };
        server.accept(Object.assign(far, vouched), address);
        return Promise.resolve(Object.assign(near, vouched));
      },
      onClosed: () => server.shutdown({ graceMs: 0 }),
    },
    subset(options, channelRules),
  );
}
