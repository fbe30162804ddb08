/** A connection that takes calls, as a policy sees it. Created by the connections of a channel. */
import type { Candidate, Room } from '../balancing/policy.ts';
import type { ClientLink } from './client-link.ts';
import type { Server } from './servers.ts';

export class ReadyServer implements Candidate {
  readonly address: string;
  readonly weight: number;
  readonly link: ClientLink;

  constructor({ address, weight }: Server, link: ClientLink) {
    this.address = address;
    this.weight = weight;
    this.link = link;
  }

  get load(): number {
    return this.link.session.inFlight;
  }
}

export const takesCall: Room<ReadyServer> = ({ link }) => !link.session.full;
export const takesStream: Room<ReadyServer> = ({ link }) => !link.streams.full;
