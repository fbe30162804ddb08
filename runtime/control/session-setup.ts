/** What both handshakes share: the limits that a side announces, and making a native session from the two sides' limits. */
import { acquireContext, contextOptions, type FabricName, releaseContext } from '../call/contexts.ts';
import type { FabricContext } from '../call/fabric-context.ts';
import type { Target } from '../call/outgoing.ts';
import type { PeerLimits } from './frames.ts';

export interface LocalSide {
  readonly role: 'client' | 'server';
  readonly inflightMax: number;
  readonly maxMessageBytes: number;
  /** Fabrics to offer or accept, in order of preference. */
  readonly fabrics: readonly FabricName[];
  readonly identity: string;
  readonly log: (line: string) => void;
}

export function localLimits(side: LocalSide): PeerLimits {
  const { inflightMax, maxMessageBytes } = side;
  return { inflightMax, maxMessageBytes, slotBytes: contextOptions().slotBytes };
}

/** A native session that is not connected yet, and the context that it holds a use of. */
export interface Prepared {
  readonly context: FabricContext;
  readonly target: Target;
}

/** Throws when the fabric cannot be had or a limit is reached; nothing is left behind then. `inflightMax` is the agreed one. */
export function prepareSession(
  side: LocalSide,
  fabric: FabricName,
  peer: PeerLimits,
  inflightMax: number,
): Prepared {
  const context = acquireContext(fabric);
  try {
    const session = context.createSession({
      role: side.role,
      inflightMax,
      maxMessageBytes: side.maxMessageBytes,
      peerMaxMessageBytes: peer.maxMessageBytes,
    });
    const eagerBytes = Math.min(contextOptions().slotBytes, peer.slotBytes);
    return { context, target: { session, eagerBytes, maxMessageBytes: peer.maxMessageBytes } };
  } catch (error) {
    releaseContext(context);
    throw error;
  }
}

/** Undoes `prepareSession` for a session that nobody has been attached to. */
export function discardSession({ context, target }: Prepared, reason: string): void {
  context.closeSession(target.session, reason);
  releaseContext(context);
}
