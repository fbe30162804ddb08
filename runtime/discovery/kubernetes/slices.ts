/**
 * EndpointSlices (discovery.k8s.io/v1). Computes the servers that are named by all slices of one service
 * together. Every value is checked, because the slices come from another program.
 */
import { isIP } from 'node:net';
import type { Server } from '../../client/connections/servers.ts';
import { formatAddress } from '../../control/socket/address.ts';
import { usable } from '../watched.ts';

interface Endpoint {
  readonly address: string;
  readonly ready: boolean;
  readonly serving: boolean;
  readonly zone: string | undefined;
  readonly attributes: Readonly<Record<string, string>>;
}

export interface Slice {
  readonly name: string;
  readonly addressType: string;
  readonly ports: readonly { readonly name: string; readonly port: number }[];
  readonly endpoints: readonly Endpoint[];
}

type Fields = Readonly<Record<string, unknown>>;

/** Returns the fields of an object. Returns no fields for any other value. */
export const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
const listOf = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value.map(fieldsOf) : []);
const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/**
 * Returns the zone of an endpoint for clients, which comes from the hints. The endpoint's own zone is used if
 * the hints contain it or if there are no hints.
 */
function zoneOf(endpoint: Fields): string | undefined {
  const own = textOf(endpoint.zone);
  const hinted = listOf(fieldsOf(endpoint.hints).forZones).flatMap(({ name }) => textOf(name) ?? []);
  return hinted.length === 0 || (own !== undefined && hinted.includes(own)) ? own : hinted[0];
}

function endpointOf(given: Fields, addressType: string): Endpoint | undefined {
  // If the hints do not contain the endpoint's zone, the first hint is used, as in Kubernetes' own proxy.
  const address = Array.isArray(given.addresses) ? textOf(given.addresses[0]) : undefined;
  if (address === undefined || (addressType !== 'FQDN' && isIP(address) === 0)) return undefined;
  const { ready, serving } = fieldsOf(given.conditions);
  const pod = textOf(fieldsOf(given.targetRef).name);
  const node = textOf(given.nodeName);
  return {
    address,
    // An unknown condition counts as true. In old clusters, `serving` is missing and has the value of
    // `ready`.
    ready: ready !== false,
    serving: (serving ?? ready) !== false,
    zone: zoneOf(given),
    attributes: { ...(pod !== undefined && { pod }), ...(node !== undefined && { node }) },
  };
}

/** Returns the version of an object or a list. Throws when the object has no version. */
export function versionOf(object: Fields): string {
  const version = textOf(fieldsOf(object.metadata).resourceVersion);
  if (version === undefined) throw new Error('the API server sent an object without a resourceVersion');
  return version;
}

/** Throws for an object that is not an EndpointSlice. */
export function sliceOf(object: Fields): Slice {
  const name = textOf(fieldsOf(object.metadata).name);
  const addressType = textOf(object.addressType);
  if (name === undefined || addressType === undefined)
    throw new Error('the API server sent an object that is no EndpointSlice');
  return {
    name,
    addressType,
    ports: listOf(object.ports).flatMap((each) => {
      const { port } = each;
      return typeof port === 'number' ? [{ name: textOf(each.name) ?? '', port }] : [];
    }),
    endpoints: listOf(object.endpoints).flatMap((each) => endpointOf(each, addressType) ?? []),
  };
}

/**
 * Returns the port of a slice by its name or number. Without a name and a number, returns the only port. The
 * number in a slice is the port of the pods, and may differ between slices. A number that the application
 * gives is used as it is.
 */
function portIn({ ports }: Slice, wanted: string | number | undefined): number | undefined {
  if (typeof wanted === 'number') return wanted;
  if (wanted !== undefined) return ports.find(({ name }) => name === wanted)?.port;
  return ports.length === 1 ? ports[0]!.port : undefined;
}

/**
 * Returns the addresses of one family. A pod of a dual-stack service is in slices of both families but is
 * only one server.
 */
function ofOneFamily(slices: readonly Slice[]): readonly Slice[] {
  for (const family of ['IPv4', 'IPv6', 'FQDN']) {
    const found = slices.filter((each) => each.addressType === family && each.endpoints.length > 0);
    if (found.length > 0) return found;
  }
  return [];
}

/**
 * Returns the ready servers of all slices. When no server is ready, returns those that still serve while they
 * terminate, as Kubernetes' own proxy does. An endpoint in several slices counts once. The pod counts as
 * ready if one of the slices says so. Stops when there are more than `max` servers.
 */
export function serversIn(
  slices: readonly Slice[],
  port: string | number | undefined,
  max: number,
): readonly Server[] {
  const family = ofOneFamily(slices);
  const servers = new Map<string, Server>();
  for (const condition of ['ready', 'serving'] as const) {
    for (const slice of family) {
      const number = portIn(slice, port);
      if (number === undefined) continue;
      for (const { [condition]: counts, address: host, zone, attributes } of slice.endpoints) {
        if (!counts) continue;
        const address = formatAddress({ kind: 'tcp', host, port: number });
        const server = usable({ address, zone, attributes });
        if (server !== undefined && !servers.has(server.address)) servers.set(server.address, server);
        if (servers.size > max) return [...servers.values()];
      }
    }
    if (servers.size > 0) break;
  }
  return [...servers.values()];
}

/** Returns the ports of the slices as text for errors, such as `grpc 5000, metrics 9090`. */
export function portsOf(slices: readonly Slice[]): string {
  const all = slices.flatMap(({ ports }) => ports.map(({ name, port }) => `${name} ${port}`.trim()));
  return [...new Set(all)].join(', ') || 'none';
}
