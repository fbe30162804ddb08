/**
 * The servers of a channel: their addresses with weight, zone and attributes, and the checks of these. The
 * addresses come from a list or a resolver. This file is used when a channel is created, and for each answer
 * of a resolver.
 */
import { disown } from '../../codec/disown.ts';
import { formatAddress, parseAddress } from '../../control/socket/address.ts';
import { textOf } from '../../core/foreign.ts';
import type { Listed } from '../balancing/policy.ts';
import * as limits from './limits.ts';

/** The address of a server, with facts about it for load-balancing policies and for the application. */
export interface ServerAddress {
  /** `host:port`, `[ipv6]:port` or `unix:/path`. */
  readonly address: string;
  /**
   * Its share of the calls, relative to the weights of the other addresses. From 0.001 to 1,000,000, default
   * 1.
   */
  readonly weight?: number | undefined;
  /** Where the server is, such as a rack or an availability zone; see the option `zone` of channels. */
  readonly zone?: string | undefined;
  /**
   * Other addresses of the same server, in order of preference, such as a unix path of its node. An attempt
   * to connect tries them one after another, and `address` last, unless they contain it. For load balancing
   * all of these addresses are one server, which `address` identifies. At most 8.
   */
  readonly doors?: readonly string[] | undefined;
  /** Whatever else is known about the server. `channel.addresses` shows these values. */
  readonly attributes?: Readonly<Record<string, string>> | undefined;
}

/** A ServerAddress that was checked, with the default weight if it had none. */
export type Server = ServerAddress & Listed;

/** Checks and copies the attributes, so that later changes by the application have no effect here. */
function checkedAttributes(where: string, given: unknown): Readonly<Record<string, string>> | undefined {
  if (given === undefined) return undefined;
  if (typeof given !== 'object' || given === null || Symbol.iterator in given)
    throw new TypeError(`${where}: attributes are an object of names and texts`);
  for (const [name, value] of Object.entries(given))
    if (typeof disown(value as unknown) !== 'string')
      throw new TypeError(`${where}: the attribute ${name} must be a string, but is ${textOf(value)}`);
  return Object.freeze({ ...given });
}

function checkedDoors(where: string, given: unknown): readonly string[] | undefined {
  if (given === undefined) return undefined;
  if (!Array.isArray(given)) throw new TypeError(`${where}: doors are a list of addresses`);
  if (given.length > limits.doorsMax)
    throw new RangeError(`${where}: ${given.length} doors, at most ${limits.doorsMax} are allowed`);
  return [...new Set(given.map((door: string) => formatAddress(parseAddress(door))))];
}

function checkedServer(where: string, given: string | ServerAddress): Server {
  const { address, weight, zone, doors, attributes }: ServerAddress =
    typeof given === 'object' && given !== null ? given : { address: given };
  const shown = formatAddress(parseAddress(address));
  const named = `${where}: ${shown}`;
  const { min, max, default: one } = limits.weight;
  if (weight !== undefined && !(typeof weight === 'number' && weight >= min && weight <= max))
    throw new RangeError(`${named}: weight ${String(disown(weight))} is not a number from ${min} to ${max}`);
  if (zone !== undefined && typeof disown(zone) !== 'string')
    throw new TypeError(`${named}: the zone must be a string, but is ${textOf(zone)}`);
  return {
    address: shown,
    weight: weight ?? one,
    zone,
    doors: checkedDoors(named, doors),
    attributes: checkedAttributes(named, attributes),
  };
}

/**
 * Parses the addresses; of equal addresses, the first is used. Throws a TypeError for an invalid address,
 * door, zone or attribute, and a RangeError for an invalid weight, or too many addresses or doors. `advice`
 * is the end of the error for too many addresses.
 */
export function checkedServers(
  where: string,
  given: readonly (string | ServerAddress)[],
  max: number = limits.addressesMax,
  advice = '',
): Server[] {
  if (given.length > max)
    throw new RangeError(`${where}: ${given.length} addresses, at most ${max} are allowed${advice}`);
  const servers = new Map<string, Server>();
  for (const each of given) {
    const server = checkedServer(where, each);
    if (!servers.has(server.address)) servers.set(server.address, server);
  }
  return [...servers.values()];
}
