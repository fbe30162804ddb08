/**
 * A server that takes calls, as a policy sees it. It has between one and `connectionsPerAddress` connections.
 * The connections of a channel create this object on their JS thread.
 */
import type { Reporting } from '../balancing/by-reports.ts';
import type { Room } from '../balancing/policy.ts';
import type { ClientLink } from './client-link.ts';
import type { Server } from './servers.ts';

export class ReadyServer implements Reporting {
  readonly address: string;
  readonly weight: number;
  readonly zone: string | undefined;
  readonly links: readonly ClientLink[];

  /** `links` has at least one connection. */
  constructor({ address, weight, zone }: Server, links: readonly ClientLink[]) {
    this.address = address;
    this.weight = weight;
    this.zone = zone;
    this.links = links;
  }

  get load(): number {
    const { links } = this;
    if (links.length === 1) return links[0]!.load;
    return links.reduce((sum, { load }) => sum + load, 0);
  }

  reportedWeight(nowMs: number): number {
    return this.links.reduce((most, { loads }) => Math.max(most, loads?.at(nowMs) ?? 0), 0);
  }

  /**
   * Returns the connection with room that has the fewest calls in flight, or undefined when none has room.
   */
  link(room: LinkRoom): ClientLink | undefined {
    const { links } = this;
    if (links.length === 1) return links[0];
    let least: ClientLink | undefined;
    for (const link of links) if (room(link) && (least === undefined || link.load < least.load)) least = link;
    return least;
  }
}

/** Returns whether a connection has a free call slot, or a free stream slot. */
export type LinkRoom = (link: ClientLink) => boolean;

export const takesCall: LinkRoom = ({ session }) => !session.full;
export const takesStream: LinkRoom = ({ streams }) => !streams.full;

/** Returns whether one of the connections of a server has room. */
function ofServers(room: LinkRoom): Room<ReadyServer> {
  return ({ links }) => (links.length === 1 ? room(links[0]!) : links.some(room));
}
const callRoom = ofServers(takesCall);
const streamRoom = ofServers(takesStream);

/** Does the same as `ofServers`, but creates the function for each `room` only once and not for each call. */
export function serverRoom(room: LinkRoom): Room<ReadyServer> {
  return room === takesCall ? callRoom : streamRoom;
}
