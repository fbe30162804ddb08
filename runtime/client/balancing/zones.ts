/**
 * Prefers the servers of the client's own zone, and sends a part of the calls to other zones when too few
 * servers of the own zone are ready. The rule is the same as for the priority levels of Envoy: the own zone
 * is the first level, and all other zones together are the second. Servers run with some capacity to spare.
 * Therefore a zone counts as complete while the weight of its ready servers times `overprovisioning` is at
 * least the weight of all its servers. When the weight is lower, the missing share of the calls goes to the
 * other zones. When less than `panicShare` of all servers is ready, zones are ignored. The connections of a
 * channel that has a zone use this file around the policy that chooses within a zone.
 */
import type { Candidate, Listed, Policy, Room } from './policy.ts';

/** A zone is complete while at least 72 % of its weight is ready, as in Envoy. */
const overprovisioning = 1.4;
/** Zones are ignored when a smaller share of the servers is ready, as in Envoy. */
const panicShare = 0.5;

/** Returns a number from 0 to 1 that decides whether a call stays in its zone. */
export type Draw = (metadata: Uint8Array | undefined) => number;

const weightOf = (servers: readonly Listed[]): number => servers.reduce((sum, { weight }) => sum + weight, 0);

/** Returns the share of all calls that a zone can take, from 0 to 1. */
function health(ready: readonly Listed[], listed: readonly Listed[]): number {
  return listed.length === 0 ? 0 : Math.min(1, (overprovisioning * weightOf(ready)) / weightOf(listed));
}

export class Zones<C extends Candidate> implements Policy<C> {
  readonly #isNear: (server: Listed) => boolean;
  readonly #isFar: (server: Listed) => boolean;
  readonly #near: Policy<C>;
  /** Chooses among the servers of other zones, or among all servers when zones are ignored. */
  readonly #far: Policy<C>;
  readonly #draw: Draw;
  #listed: readonly Listed[] | undefined;
  #nearListed: readonly Listed[] = [];
  #farListed: readonly Listed[] = [];
  /** Share of the calls that stay in the zone. */
  #share = 0;

  /** `make` creates the policy within a zone. */
  constructor(zone: string, make: () => Policy<C>, draw: Draw) {
    this.#isNear = (server) => server.zone === zone;
    this.#isFar = (server) => server.zone !== zone;
    this.#near = make();
    this.#far = make();
    this.#draw = draw;
  }

  /**
   * Share of the calls that go to the client's own zone while the servers of that zone have free call slots.
   */
  get share(): number {
    return this.#share;
  }

  update(ready: readonly C[], listed: readonly Listed[]): void {
    if (this.#listed !== listed) {
      this.#listed = listed;
      this.#nearListed = listed.filter(this.#isNear);
      this.#farListed = listed.filter(this.#isFar);
    }
    const near = ready.filter(this.#isNear);
    const panics = weightOf(ready) < panicShare * weightOf(listed);
    if (near.length === 0 || panics) {
      this.#share = 0;
      this.#near.update([], this.#nearListed);
      this.#far.update(ready, listed);
      return;
    }
    const far = ready.filter(this.#isFar);
    const healthNear = health(near, this.#nearListed);
    // When both levels together cannot take all calls, the calls are divided in proportion to their health.
    this.#share = healthNear / Math.min(1, healthNear + health(far, this.#farListed));
    this.#near.update(near, this.#nearListed);
    this.#far.update(far, this.#farListed);
  }

  /** When no server of the drawn level has room, the other level takes the call. */
  pick(room: Room<C>, metadata: Uint8Array | undefined): C | undefined {
    const share = this.#share;
    if (share === 1 || (share > 0 && this.#draw(metadata) < share))
      return this.#near.pick(room, metadata) ?? this.#far.pick(room, metadata);
    return this.#far.pick(room, metadata) ?? this.#near.pick(room, metadata);
  }
}
