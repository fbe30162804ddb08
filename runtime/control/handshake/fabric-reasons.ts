/**
 * Collects the reasons why fabrics were not chosen for a connection, and logs them in one line. Each side of
 * a handshake has such an object. The welcome frame contains the reasons that the server knows before the
 * client tries a fabric.
 */

import type { FabricContext } from '../../boundary/fabric-context.ts';
import { type FabricName, fabricNames, fabricRow } from '../../fabrics.ts';
import type { SessionInfo } from '../../native/native.ts';
import type { FabricReason } from '../frames.ts';
import type { LocalSide } from './session-setup.ts';

/**
 * Returns a text like `mlx5_0 port 1, window`. It omits the device when the device has the name of the
 * fabric.
 */
function detail(fabric: FabricName, { device, port, security }: SessionInfo): string {
  const place = port === 0 ? device : `${device} port ${port}`;
  return place === fabric ? security : `${place}, ${security}`;
}

/** Returns the reason without the name of the fabric, which the text already contains. */
function bare(name: string, reason: string): string {
  for (const prefix of ['rdma-rpc: ', `${name} is off: `, `${name}: `])
    if (reason.startsWith(prefix)) reason = reason.slice(prefix.length);
  return reason;
}

/**
 * Returns whether the fabric is a second way to the memory that `chosen` reaches. `chosen` has the shorter
 * reach and is therefore preferred.
 */
const isSecondWay = (name: FabricName, chosen: FabricName): boolean =>
  fabricRow(chosen).reach === 'host' && fabricRow(name).reach === 'kernel';

export class FabricReasons {
  readonly #side: LocalSide;
  readonly #reasons = new Map<string, string>();
  /** True when a fabric that both sides offered did not connect. */
  tried = false;

  constructor(side: LocalSide) {
    this.#side = side;
    this.add(side.without);
  }

  add(reasons: readonly FabricReason[]): void {
    for (const { name, reason } of reasons)
      if (!this.#reasons.has(name)) this.#reasons.set(name, bare(name, reason));
  }

  failed(fabric: FabricName, reason: string): void {
    this.tried = true;
    this.#reasons.set(fabric, bare(fabric, reason));
  }

  /** The reasons, in the order of `auto`. */
  get list(): FabricReason[] {
    const names = [...new Set([...fabricNames, ...this.#reasons.keys()])];
    return names
      .filter((name) => this.#reasons.has(name))
      .map((name) => ({ name, reason: this.#reasons.get(name)! }));
  }

  toString(): string {
    return this.list.map(({ name, reason }) => `${name}: ${reason}`).join('; ');
  }

  /** Logs the choice. `peer` names the other side. */
  chosen(peer: string, fabric: FabricName, context: FabricContext, session: number): void {
    this.#side.log(() => this.#choice(peer, fabric, context, session), this.tried);
  }

  /** Returns the reason for each fabric that was not chosen. */
  others(chosen: FabricName): FabricReason[] {
    return (
      fabricNames
        // A second way to the same memory is not mentioned when the first way was chosen.
        .filter((name) => name !== chosen && !isSecondWay(name, chosen))
        .map((name) => ({ name, reason: this.#reasons.get(name) ?? this.#untried(name, chosen) }))
    );
  }

  #choice(peer: string, fabric: FabricName, context: FabricContext, session: number): string {
    const others = this.others(fabric).map(({ name, reason }) => `${name}: ${reason}`);
    const with_ = detail(fabric, context.native.sessionInfo(session));
    return [`${peer}: fabric ${fabric} (${with_}) chosen`, ...others].join('; ');
  }

  #untried(name: FabricName, chosen: FabricName): string {
    return this.#side.fabrics.includes(name) ? `not needed, ${chosen} comes first` : 'not requested';
  }
}
