/**
 * Provides servers that a test starts and stops by name, without sockets, and channels to these servers. The
 * tests of this folder are based on it.
 */
import { type Duplex, duplexPair } from 'node:stream';
import type { ChannelOptions, Interceptor, Resolver, ServerAddress } from 'rdma-rpc';
import { ClientChannel } from '../../runtime/client/channel.ts';
import type { Server } from '../../runtime/client/connections/servers.ts';
import { RpcServer } from '../../runtime/server/server.ts';
import { type EchoLog, echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';

export { caught, turn, until } from '../outcomes.ts';

export interface Running {
  readonly server: RpcServer;
  readonly log: EchoLog;
}

/** In these tests any text can be an address, and addresses are not checked. */
const serverOf = (given: string | ServerAddress): Server =>
  typeof given === 'string' ? { address: given, weight: 1 } : { ...given, weight: given.weight ?? 1 };

export class Bed {
  /** The running servers by address. */
  readonly running = new Map<string, Running>();
  /** Addresses in the order in which they were dialled. */
  readonly dialled: string[] = [];
  /** Connections to these addresses get no answer at all. */
  readonly mute = new Set<string>();
  /** What `fetch` returns at these addresses, in place of the server's own name. */
  readonly unwell = new Map<string, () => Promise<{ text: string }>>();
  readonly #channels: ClientChannel[] = [];
  readonly #fars = new Map<string, Duplex>();

  /** The arguments contain the interceptors of all servers that this call creates. */
  start(...given: (string | Interceptor)[]): void {
    const interceptors = given.filter((each) => typeof each !== 'string');
    for (const address of given) {
      if (typeof address !== 'string') continue;
      const log: EchoLog = { started: 0, aborted: [] };
      const server = new RpcServer({}, ['sim']).use(...interceptors).add(EchoDefinition, {
        ...echoHandlers(log),
        fetch: () => {
          ++log.started;
          return this.unwell.get(address)?.() ?? { text: address };
        },
      });
      this.running.set(address, { server, log });
    }
  }

  async stop(address: string, graceMs = 0): Promise<void> {
    const running = this.running.get(address);
    this.running.delete(address);
    await running?.server.shutdown({ graceMs });
  }

  at(address: string): Running {
    return this.running.get(address)!;
  }

  /** Returns the server's end of the last connection to an address. */
  far(address: string): Duplex {
    return this.#fars.get(address)!;
  }

  channel(
    given: readonly (string | ServerAddress)[] | Resolver,
    options: ChannelOptions = {},
  ): ClientChannel {
    const target = 'resolve' in given ? { resolver: given } : { servers: given.map(serverOf) };
    const dial = async (_: AbortSignal, address: string) => {
      this.dialled.push(address);
      const [near, far] = duplexPair();
      // Before Node 24, closing one half of a pair does not close the other half.
      far.once('close', () => near.destroy());
      if (this.mute.has(address)) return near;
      const running = this.running.get(address);
      if (running === undefined) throw new Error(`nobody listens at ${address}`);
      this.#fars.set(address, far);
      running.server.accept(far, 'client');
      return near;
    };
    const channel = new ClientChannel({ address: 'bed', ...target, dial, fabrics: ['sim'] }, options);
    this.#channels.push(channel);
    return channel;
  }

  async close(): Promise<void> {
    for (const channel of this.#channels) await channel.close();
    for (const address of [...this.running.keys()]) await this.stop(address);
  }
}
