/**
 * What both handshakes share: the limits that a side announces, and making a native session from the two
 * sides' limits.
 */

import {
  acquireContext,
  acquireOwnContext,
  type FabricChoice,
  releaseContext,
  slotBytesOf,
  slotBytesOn,
} from '../../boundary/contexts.ts';
import type { FabricContext } from '../../boundary/fabric-context.ts';
import type { Target } from '../../boundary/outgoing/submission.ts';
import type { Through } from '../../boundary/sessions.ts';
import { type FabricName, fabrics } from '../../fabrics.ts';
import { newBufferBytes, slotsPerStream } from '../../limits.ts';
import type { NativeContext, SessionOptions, VerbsOptions } from '../../native/native.ts';
import { type FabricReason, feature, ownFeatures, type PeerLimits } from '../frames.ts';
import type { Guard, Guarded, SecurityLevel } from '../security-level.ts';

export interface LocalSide {
  /** Who makes the calls: this side as the client, or the peer. */
  readonly role: 'client' | 'server';
  /** Whether its queue pairs ask for their connections. Without: those of a client do. */
  readonly active?: boolean;
  readonly inflightMax: number;
  readonly streamsMax: number;
  readonly messageMaxBytes: number;
  /** Fabrics to offer or accept, in order of preference. */
  readonly fabrics: readonly FabricName[];
  /** Those that are not among them because they cannot be had here. */
  readonly without: readonly FabricReason[];
  /** How the verbs fabric chooses its device and connects. */
  readonly verbs: VerbsOptions;
  /**
   * Address of this end of the sideband: verbs takes the device and the GID that have it, unless they are
   * named.
   */
  readonly address?: string;
  /** Where a client's sideband connection leads: tcp and shared memory by descriptors dial that, too. */
  readonly through?: Through;
  /** What a client shows to be let in, in its wire form; asked for when the connection is there. */
  readonly credentials?: () => Promise<Uint8Array>;
  /** The least that a session must promise. */
  readonly require: SecurityLevel;
  /** They may be sent where others can read them. */
  readonly unsealed?: boolean;
  /** Each session has a context of its own. */
  readonly isolated: boolean;
  readonly identity: string;
  /**
   * Of a server: arena memory that large requests of the session may hold, and its answers as much again,
   * when it is known who the client is.
   */
  readonly arenaBytesMax?: () => number | undefined;
  /** Of a server: how long calls may take. */
  readonly timeLimits?: SessionOptions['timeLimits'];
  /** The choice of fabric; `skipped`: one that both sides wanted did not connect. */
  readonly log: (line: () => string, skipped: boolean) => void;
}

/** What a session of this side on a fabric is to be opened on. */
export function choiceOf({ verbs, address }: LocalSide, fabric: FabricName): FabricChoice {
  if (!fabrics[fabric].hasDevice) return { fabric };
  // Of a device that is named, too, the GID is the one of that address, unless that is named as well.
  const named = verbs.device !== undefined && verbs.gidIndex !== undefined;
  const byAddress = !named && address !== undefined;
  return { fabric, verbs: byAddress ? { ...verbs, address } : verbs };
}

/** Each session on this fabric has a context of its own. */
export function isAlone(side: Pick<LocalSide, 'isolated'>, fabric: FabricName): boolean {
  return side.isolated || fabrics[fabric].isAlone;
}

export function localLimits(side: LocalSide): PeerLimits {
  const { inflightMax, streamsMax, messageMaxBytes } = side;
  const slotBytes = slotBytesOf('registered');
  return { inflightMax, streamsMax, messageMaxBytes, slotBytes, shmSlotBytes: slotBytesOf('shared') };
}

/** A native session that is not connected yet, and the context that it holds a use of. */
export interface Prepared {
  readonly context: FabricContext;
  readonly target: Target;
  /** Agreed: calls in flight, and streams open at once. */
  readonly inflightMax: number;
  readonly streamsMax: number;
  readonly guard: Guard;
}

/** What a session may send to a peer with these features. */
export const peerTakes = (features: number): { peerTakesSegments: boolean; peerTakesInline: boolean } => ({
  peerTakesSegments: (features & feature.segments) !== 0,
  peerTakesInline: (features & feature.inlineEntries) !== 0,
});

/**
 * Which messages are copied to the arena although their large values could go from where they are
 * (docs/internals/decisions/memory.md). Not those that are copied to staging memory anyway.
 */
function copied(
  native: NativeContext,
  session: number,
  role: LocalSide['role'],
): { copiedBytes: number; newCopiedBytes: number } {
  if (native.sessionInfo(session).security === 'staging') return { copiedBytes: 0, newCopiedBytes: 0 };
  const { copiesLate, copiedRequestBytes, pinsMemory } = native.capabilities;
  const copiedBytes = role === 'client' ? copiedRequestBytes : 0;
  return {
    copiedBytes: copiesLate ? Number.POSITIVE_INFINITY : copiedBytes,
    newCopiedBytes: pinsMemory ? newBufferBytes : 0,
  };
}

/**
 * Throws when the fabric cannot be had or a limit is reached; nothing is left behind then. `agreed`: the
 * limits of the welcome; `features`: what the peer can do.
 */
export function prepareSession(
  side: LocalSide,
  fabric: FabricName,
  peer: PeerLimits,
  agreed: PeerLimits,
  features: number,
  { guard, seal }: Guarded,
): Prepared {
  const { inflightMax, streamsMax = 0 } = agreed;
  const peerSlotBytes =
    fabrics[fabric].slots === 'shared' ? (peer.shmSlotBytes ?? peer.slotBytes) : peer.slotBytes;
  const callSlots = inflightMax + slotsPerStream * streamsMax;
  const choice = choiceOf(side, fabric);
  const context = isAlone(side, fabric) ? acquireOwnContext(choice, callSlots) : acquireContext(choice);
  try {
    const arenaBytesMax = side.arenaBytesMax?.();
    const session = context.sessions.create({
      role: side.role,
      ...(side.active !== undefined && { active: side.active }),
      inflightMax,
      callSlots,
      creditPool: fabrics[fabric].creditPool && (features & ownFeatures & feature.creditPool) !== 0,
      messageMaxBytes: side.messageMaxBytes,
      peerMessageMaxBytes: peer.messageMaxBytes,
      peerSlotBytes,
      ...peerTakes(features),
      ...(arenaBytesMax !== undefined && { arenaBytesMax }),
      ...(side.timeLimits !== undefined && { timeLimits: side.timeLimits }),
      ...(seal !== undefined && { seal }),
    });
    const eagerBytes = Math.min(slotBytesOn(fabric), peerSlotBytes);
    const aligned = (features & feature.aligned) !== 0;
    const { native } = context;
    const segmentedBytes = native.segmentedBytes(session);
    const target: Target = {
      session,
      eagerBytes,
      segmentedBytes,
      messageMaxBytes: peer.messageMaxBytes,
      peer: (side.active ?? side.role === 'client') ? 'server' : 'client',
      aligned,
      ...copied(native, session, side.role),
      gone: false,
    };
    return { context, target, inflightMax, streamsMax, guard };
  } catch (error) {
    releaseContext(context);
    throw error;
  }
}

/** Undoes `prepareSession` for a session that nobody has been attached to. */
export function discardSession({ context, target }: Prepared, reason: string): void {
  context.sessions.discard(target.session, reason);
  releaseContext(context);
}
