/**
 * Determines where a channel finds its servers. The first argument of createChannel is a list, a name in DNS,
 * or a resolver of the application. This file is used when a channel is created.
 */
import { Resolver as DnsResolver } from 'node:dns';
import { isIP } from 'node:net';
import { formatAddress, parseAddress } from '../../control/socket/address.ts';
import { dnsResolver } from '../resolvers/dns.ts';
import { srvResolver } from '../resolvers/srv.ts';
import type { Resolver } from './resolver.ts';
import { checkedServers, type Server, type ServerAddress } from './servers.ts';

/** Either fixed addresses, or a resolver. */
export interface Target {
  /** Text for errors and logs. */
  readonly name: string;
  /** The host name that the user has given. It is set when the addresses themselves have no host name. */
  readonly host?: string;
  readonly servers?: readonly Server[];
  readonly resolver?: Resolver;
}

/** Matches `dns:host:port` and `srv:name`, also with two or three slashes, and `dns://SERVER/host:port`. */
const named = /^(dns|srv):(?:\/\/([^/]+)\/|\/\/\/?)?(.*)$/;
/** Matches `_service._proto.name`. A server's certificate must have this name. */
const serviceName = /^_[^.:]+\._[^.:]+\.([^:]+)$/;

/** Throws a TypeError when the DNS server is not an IP address, with or without a port. */
function checkDnsServer(given: string, server: string): void {
  try {
    new DnsResolver().setServers([server]);
  } catch (cause) {
    const text = `createChannel: ${given}: the DNS server is not an IP address; use dns://10.0.0.2/host:port, or dns:///host:port for the system's own`;
    throw new TypeError(text, { cause });
  }
}

function namedTarget(given: string, scheme: string, server: string | undefined, name: string): Target {
  if (server !== undefined) checkDnsServer(given, server);
  if (scheme === 'srv') {
    const [, host] = serviceName.exec(name) ?? [];
    if (host === undefined)
      throw new TypeError(`createChannel: ${given} names no service; use srv:///_service._tcp.example.com`);
    return { name: given, host, resolver: srvResolver(name, server) };
  }
  const address = parseAddress(name);
  if (address.kind !== 'tcp') throw new TypeError(`createChannel: ${given} names no host`);
  const { host, port } = address;
  if (isIP(host) !== 0)
    return { name: given, servers: checkedServers('createChannel', [formatAddress(address)]) };
  return { name: given, host, resolver: dnsResolver(host, port, server) };
}

/**
 * Interprets the first argument of createChannel. Throws a TypeError that says what is wrong with the
 * argument.
 */
export function targetOf(given: string | readonly (string | ServerAddress)[] | Resolver): Target {
  if (typeof given === 'object' && given !== null && 'resolve' in given) {
    if (typeof given.resolve !== 'function') throw new TypeError('createChannel: resolve is not a function');
    return { name: 'resolver', resolver: given };
  }
  const [, scheme, server, rest = ''] = (typeof given === 'string' && named.exec(given)) || [];
  if (scheme !== undefined) return namedTarget(String(given), scheme, server, rest);
  const list = typeof given === 'string' ? given.split(',').map((each) => each.trim()) : given;
  if (!Array.isArray(list)) parseAddress(String(given));
  if (list.length === 0) throw new TypeError('createChannel: an empty list of addresses');
  const servers = checkedServers('createChannel', list);
  return { name: servers.map(({ address }) => address).join(','), servers };
}
