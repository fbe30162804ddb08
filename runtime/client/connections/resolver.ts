/**
 * The source of a channel's addresses: a list, DNS, or a resolver of the application (etcd, Consul, a file).
 * Used when a channel is created, and by resolution.ts.
 */
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { formatAddress, parseAddress } from '../../control/socket/address.ts';
import { checkedServers, type Server, type ServerAddress } from './servers.ts';

/** Tells a channel which addresses currently serve it. */
export interface Resolver {
  /**
   * Returns the addresses, each `host:port`, `[ipv6]:port` or `unix:/path`, or an object with one and its
   * weight; their order matters to `pick-first` alone. Called when the channel connects, and again when a
   * connection was lost. A rejection or an empty list counts as a failed attempt to connect; addresses that
   * are known by then stay in use, marked as stale. `signal` is aborted when the answer takes too long.
   */
  resolve(signal: AbortSignal): Promise<readonly (string | ServerAddress)[]>;
  /**
   * Optional; called once. `onChange` takes the new list; without one it makes the channel resolve again at
   * once. A list that is empty or has an invalid address counts as a failed answer. Returns a function that
   * stops watching.
   */
  watch?(onChange: (servers?: readonly (string | ServerAddress)[]) => void): () => void;
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
