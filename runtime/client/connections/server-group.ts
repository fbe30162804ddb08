/**
 * One server of a channel with its connections. A server whose worker threads share an address has several
 * connections (option `connectionsPerAddress`). The connections of a channel create this object for each
 * list.
 */
import type { Connection } from '../../control/handshake/client-handshake.ts';
import type { RpcError } from '../../core/errors/rpc-error.ts';
import type { ClientLink } from './client-link.ts';
import type { Endpoint, EndpointState } from './endpoint.ts';
import type { Server } from './servers.ts';

/** The current state of one address of a channel. */
export interface AddressSummary {
  readonly address: string;
  /**
   * The share of the calls that the address gets, relative to the weights of the other addresses. Default 1.
   */
  readonly weight: number;
  readonly zone: string | undefined;
  /** The server's other addresses, as the list or the resolver gave them. */
  readonly doors: readonly string[] | undefined;
  /** The address that the connection uses; undefined without a connection, and without `doors`. */
  readonly door: string | undefined;
  readonly attributes: Readonly<Record<string, string>> | undefined;
  /**
   * True when the last answer of the resolver was an error or empty, so that this address comes from an
   * earlier answer.
   */
  readonly stale: boolean;
  /**
   * The state of the connection, or with several connections the best of their states. `ejected` means that
   * the address is connected but not used for a while because of bad answers. With a health check, an address
   * stays `connecting` until its health service has answered for the first time, as in gRPC. `unhealthy`
   * means that the address is connected but its health service does not report SERVING.
   */
  readonly state: EndpointState | 'unhealthy';
  /** The reason why the last attempt to connect failed; undefined after a success. */
  readonly error: RpcError | undefined;
}

/** The states of an endpoint, from the best to the worst. */
const order: readonly EndpointState[] = ['ready', 'verifying', 'connecting', 'idle', 'ejected', 'failing'];

export interface ServerGroup {
  readonly server: Server;
  readonly endpoints: readonly Endpoint[];
}

type Serves = (link: ClientLink) => boolean | undefined;

/** Returns the state of connected endpoints, according to their health checks. */
function checkedState(endpoints: readonly Endpoint[], serves: Serves): AddressSummary['state'] {
  const answers = endpoints.map(({ link }) => link !== undefined && serves(link));
  if (answers.includes(true)) return 'ready';
  return answers.includes(undefined) ? 'connecting' : 'unhealthy';
}

/**
 * Returns the summary of an address, as `channel.addresses` shows it. `serves` says whether a connection
 * takes calls by its health check, and is undefined before the first answer. `doorOf` says by which door a
 * connection was made.
 */
export function summaryOf(
  { server, endpoints }: ServerGroup,
  stale: boolean,
  serves: Serves,
  doorOf: (connection: Connection) => string | undefined,
): AddressSummary {
  const { address, weight, zone, doors, attributes } = server;
  const best = order.find((each) => endpoints.some((endpoint) => endpoint.state === each))!;
  const same = endpoints.filter((endpoint) => endpoint.state === best);
  const state = best === 'ready' ? checkedState(same, serves) : best;
  const { error, link } = same[0]!;
  const door = link && doorOf(link.connection);
  return { address, weight, zone, doors, door, attributes, stale, state, error };
}

/**
 * Returns a group for each server, with `each` endpoints. Endpoints of the same address in `known` are used
 * first and are removed from `known`; `make` creates the missing endpoints.
 */
export function grouped(
  servers: readonly Server[],
  each: number,
  known: Set<Endpoint>,
  make: (address: string) => Endpoint,
): ServerGroup[] {
  const byAddress = new Map<string, Endpoint[]>();
  for (const endpoint of known) {
    const same = byAddress.get(endpoint.address);
    if (same === undefined) byAddress.set(endpoint.address, [endpoint]);
    else same.push(endpoint);
  }
  return servers.map((server) => {
    const old = (byAddress.get(server.address) ?? []).slice(0, each);
    for (const endpoint of old) known.delete(endpoint);
    const missing = Array.from({ length: each - old.length }, () => make(server.address));
    return { server, endpoints: [...old, ...missing] };
  });
}
