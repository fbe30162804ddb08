/**
 * The parts that both handshakes use: the limits that a side announces, and the creation of a native session
 * from the limits of both sides.
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
import type { Protected, Protection, SecurityLevel } from '../security-level.ts';
import type { OnStep } from './connection-steps.ts';

export interface LocalSide {
  /** `client` when this side makes the calls, `server` when the peer makes the calls. */
  readonly role: 'client' | 'server';
  /**
   * Whether this side's queue pairs are active, which means that they start the connection. Default: true for
   * a client.
   */
  readonly active?: boolean;
  readonly inflightMax: number;
  readonly streamsMax: number;
  readonly messageMaxBytes: number;
  /** Fabrics to offer or accept, in order of preference. */
  readonly fabrics: readonly FabricName[];
  /** The fabrics that are not offered because this machine does not have them, with the reasons. */
  readonly without: readonly FabricReason[];
  /** The way in which the verbs fabric chooses its device and connects. */
  readonly verbs: VerbsOptions;
  /**
   * Address of this end of the sideband connection. The verbs fabric uses the device and the GID with this
   * address, if the options do not name them.
   */
  readonly address?: string;
  /**
   * The address to which a client has made its sideband connection. The fabrics tcp and shm-fd make a second
   * connection to the same address.
   */
  readonly through?: Through;
  /** Returns the client's credentials in wire form. Runs when the connection is open. */
  readonly credentials?: () => Promise<Uint8Array>;
  /** The lowest accepted security level. */
  readonly require: SecurityLevel;
  /** True when the credentials may be sent over connections that others can read. */
  readonly unsealed?: boolean;
  /** True when each session has a context of its own. */
  readonly isolated: boolean;
  readonly identity: string;
  /**
   * Returns the limit in bytes of the arena memory for large requests of the session, which is also the limit
   * for its large responses. Only servers have this function; it runs when the client is known.
   */
  readonly arenaBytesMax?: () => number | undefined;
  /** The time limits of calls. Only servers have them. */
  readonly timeLimits?: SessionOptions['timeLimits'];
  /**
   * Runs when the fabric was chosen, with a function that returns the log line. `skipped` is true when a
   * fabric that both sides offered did not connect.
   */
  readonly log: (line: () => string, skipped: boolean) => void;
  /**
   * The time limit in ms of this attempt, when it is shorter than that of the channel. Only clients have this
   * limit.
   */
  readonly attemptMs?: number;
  /** Runs when a step of opening the connection has ended. Only clients have this function. */
  readonly onStep?: OnStep;
}

/** Returns the fabric and the device on which a session of this side is opened. */
export function choiceOf({ verbs, address }: LocalSide, fabric: FabricName): FabricChoice {
  if (!fabrics[fabric].hasDevice) return { fabric };
  // The address also selects the GID of a named device, if the GID is not named.
  const named = verbs.device !== undefined && verbs.gidIndex !== undefined;
  const byAddress = !named && address !== undefined;
  return { fabric, verbs: byAddress ? { ...verbs, address } : verbs };
}

/** Returns whether each session on this fabric has a context of its own. */
export function isAlone(side: Pick<LocalSide, 'isolated'>, fabric: FabricName): boolean {
  return side.isolated || fabrics[fabric].isAlone;
}

export function localLimits(side: LocalSide): PeerLimits {
  const { inflightMax, streamsMax, messageMaxBytes } = side;
  const slotBytes = slotBytesOf('registered');
  return { inflightMax, streamsMax, messageMaxBytes, slotBytes, shmSlotBytes: slotBytesOf('shared') };
}

/**
 * A native session that is not connected yet, and its context. The session counts as a user of the context.
 */
export interface Prepared {
  readonly context: FabricContext;
  readonly target: Target;
  /** The agreed limits of calls in flight and open streams. */
  readonly inflightMax: number;
  readonly streamsMax: number;
  readonly protection: Protection;
}

/** Returns the kinds of frames that a session may send to a peer with these features. */
export const peerTakes = (features: number): { peerTakesSegments: boolean; peerTakesInline: boolean } => ({
  peerTakesSegments: (features & feature.segments) !== 0,
  peerTakesInline: (features & feature.inlineEntries) !== 0,
});

/**
 * Returns the largest sizes of messages that are copied to the arena although their large values could be
 * sent in place (docs/internals/decisions/memory.md). Both sizes are 0 when messages are copied to staging
 * memory anyway.
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
 * Creates a session. Throws when the fabric cannot be used or a limit is reached; nothing stays allocated
 * then. `agreed` contains the limits of the welcome, and `features` the feature bits of the peer.
 */
export function prepareSession(
  side: LocalSide,
  fabric: FabricName,
  peer: PeerLimits,
  agreed: PeerLimits,
  features: number,
  { protection, seal, connectTimeoutMs }: Protected & Pick<SessionOptions, 'connectTimeoutMs'>,
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
      ...(connectTimeoutMs !== undefined && { connectTimeoutMs }),
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
    return { context, target, inflightMax, streamsMax, protection };
  } catch (error) {
    releaseContext(context);
    throw error;
  }
}

/** Undoes `prepareSession` for a session without an owner. */
export function discardSession({ context, target }: Prepared, reason: string): void {
  context.sessions.discard(target.session, reason);
  releaseContext(context);
}
