/**
 * The source of a channel's addresses: a list, DNS, or a resolver of the application (etcd, Consul, a file).
 * Used when a channel is created, and by resolution.ts.
 */
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { disown } from '../../codec/disown.ts';
import { formatAddress, parseAddress } from '../../control/socket/address.ts';
import type { Listed } from '../balancing/policy.ts';
import * as limits from './limits.ts';

/** An address with what a policy should know about it. */
export interface ServerAddress {
  /** `host:port`, `[ipv6]:port` or `unix:/path`. */
  readonly address: string;
  /**
   * Its share of the calls in relation to the weights of the other addresses, from 0.001 to 1,000,000.
   * Default 1.
   */
  readonly weight?: number | undefined;
}

/** The same with defaults. */
export type Server = ServerAddress & Listed;

/** Tells a channel which addresses currently serve it. */
export interface Resolver {
  /**
   * Returns the addresses, each `host:port`, `[ipv6]:port` or `unix:/path`, or an object with one and its
   * weight; their order matters to `pick-first` alone. Called when the channel connects, and again when a connection was lost. A rejection counts as a failed
   * attempt to connect. `signal` is aborted when the answer takes too long.
   */
  resolve(signal: AbortSignal): Promise<readonly (string | ServerAddress)[]>;
  /**
   * Optional; called once. `onChange` makes the channel resolve again at once. Returns a function that stops
   * watching.
   */
  watch?(onChange: () => void): () => void;
}

/** Either fixed addresses, or a resolver. */
export interface Target {
  /** Text for errors and logs. */
  readonly name: string;
  /** The host name given by the user, where the addresses have none. */
  readonly host?: string;
  readonly servers?: readonly Server[];
  readonly resolver?: Resolver;
}

function checkedServer(where: string, given: string | ServerAddress): Server {
  const { address, weight = limits.weight.default }: ServerAddress =
    typeof given === 'object' && given !== null ? given : { address: given };
  const shown = formatAddress(parseAddress(address));
  if (typeof weight !== 'number' || !(weight >= limits.weight.min && weight <= limits.weight.max)) {
    const { min, max } = limits.weight;
    throw new RangeError(
      `${where}: ${shown}: weight ${String(disown(weight))} is not a number from ${min} to ${max}`,
    );
  }
  return { address: shown, weight };
}

/**
 * Parses the addresses; the first of equal ones counts. Throws a TypeError for an invalid address, and a
 * RangeError for an invalid weight, or too many addresses.
 */
export function checkedServers(where: string, given: readonly (string | ServerAddress)[]): Server[] {
  if (given.length > limits.addressesMax)
    throw new RangeError(`${where}: ${given.length} addresses, at most ${limits.addressesMax} are allowed`);
  const servers = new Map<string, Server>();
  for (const each of given) {
    const server = checkedServer(where, each);
    if (!servers.has(server.address)) servers.set(server.address, server);
  }
  return [...servers.values()];
}

/** Resolves all addresses of a host name by the system's rules (hosts file, then DNS). */
function dnsResolver(host: string, port: number): Resolver {
  return {
    resolve: async () => {
      const found = await lookup(host, { all: true });
      return found.map(({ address }) => formatAddress({ kind: 'tcp', host: address, port }));
    },
  };
}

/** `dns://SERVER/host:port`, as in gRPC. */
const dnsServer = /^dns:\/\/[^/]+\//;
const dns = /^dns:(?:\/\/\/?)?/;

/** Interprets the first argument of createChannel. Throws a TypeError that says what is wrong with it. */
export function targetOf(given: string | readonly (string | ServerAddress)[] | Resolver): Target {
  if (typeof given === 'object' && given !== null && 'resolve' in given) {
    if (typeof given.resolve !== 'function') throw new TypeError('createChannel: resolve is no function');
    return { name: 'resolver', resolver: given };
  }
  if (typeof given === 'string' && dns.test(given)) {
    if (dnsServer.test(given)) {
      const text = `createChannel: ${given}: the system resolves names, so no DNS server can be given; use dns:///host:port`;
      throw new TypeError(text);
    }
    const address = parseAddress(given.replace(dns, ''));
    if (address.kind !== 'tcp') throw new TypeError(`createChannel: ${given} names no host`);
    if (isIP(address.host) !== 0)
      return { name: given, servers: checkedServers('createChannel', [formatAddress(address)]) };
    return { name: given, host: address.host, resolver: dnsResolver(address.host, address.port) };
  }
  const list = typeof given === 'string' ? given.split(',').map((each) => each.trim()) : given;
  if (!Array.isArray(list)) parseAddress(String(given));
  if (list.length === 0) throw new TypeError('createChannel: an empty list of addresses');
  const servers = checkedServers('createChannel', list);
  return { name: servers.map(({ address }) => address).join(','), servers };
}
