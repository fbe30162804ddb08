/**
 * Why fabrics were not chosen for a connection, and the one line that tells of it. Both sides of a handshake
 * keep one; what the server knows before the client tries anything travels in the welcome.
 */

import type { FabricContext } from '../../boundary/fabric-context.ts';
import { type FabricName, fabricNames, fabricRow } from '../../fabrics.ts';
import type { SessionInfo } from '../../native/native.ts';
import type { FabricReason } from '../frames.ts';
import type { LocalSide } from './session-setup.ts';

/** `mlx5_0 port 1, window`; nothing that the fabric's name has said. */
function detail(fabric: FabricName, { device, port, security }: SessionInfo): string {
  const place = port === 0 ? device : `${device} port ${port}`;
  return place === fabric ? security : `${place}, ${security}`;
}

/** Without the name that it will stand behind. */
function bare(name: string, reason: string): string {
  for (const prefix of ['rdma-rpc: ', `${name} is off: `, `${name}: `])
    if (reason.startsWith(prefix)) reason = reason.slice(prefix.length);
  return reason;
}

/** It leads to the same memory as `chosen`, which reaches less far and so comes first. */
const isSecondWay = (name: FabricName, chosen: FabricName): boolean =>
  fabricRow(chosen).reach === 'host' && fabricRow(name).reach === 'kernel';

export class FabricReasons {
  readonly #side: LocalSide;
  readonly #reasons = new Map<string, string>();
  /** One that both sides wanted did not connect. */
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

  /** In the order of `auto`. */
  get list(): FabricReason[] {
    const names = [...new Set([...fabricNames, ...this.#reasons.keys()])];
    return names
      .filter((name) => this.#reasons.has(name))
      .map((name) => ({ name, reason: this.#reasons.get(name)! }));
  }

  toString(): string {
    return this.list.map(({ name, reason }) => `${name}: ${reason}`).join('; ');
  }

  /** Logs the choice; `peer` says with whom. */
  chosen(peer: string, fabric: FabricName, context: FabricContext, session: number): void {
    this.#side.log(() => this.#choice(peer, fabric, context, session), this.tried);
  }

  #choice(peer: string, fabric: FabricName, context: FabricContext, session: number): string {
    const others = fabricNames
      // Of two ways to the same memory the second is not worth a word where the first is there.
      .filter((name) => name !== fabric && !isSecondWay(name, fabric))
      .map((name) => `${name}: ${this.#reasons.get(name) ?? this.#untried(name, fabric)}`);
    const with_ = detail(fabric, context.native.sessionInfo(session));
    return [`${peer}: fabric ${fabric} (${with_}) chosen`, ...others].join('; ');
  }

  #untried(name: FabricName, chosen: FabricName): string {
    return this.#side.fabrics.includes(name)
      ? `not needed, ${chosen} comes first`
      : 'not among those asked for';
  }
}
