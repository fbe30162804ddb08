/**
 * Which of its fabrics a server can try with a client, and what it says of the others: as far as the hello
 * and the connection tell. Used by server-handshake.ts.
 */
import { type FabricName, fabricRow } from '../../fabrics.ts';
import type { FabricReason, Hello } from '../frames.ts';
import { hostIdentity, whyNotReached } from '../host.ts';
import type { HandoffRefusals } from '../socket/handoff.ts';
import type { FabricReasons } from './fabric-reasons.ts';
import type { LocalSide } from './session-setup.ts';

/**
 * Why a client on that host cannot have this fabric by this connection, as far as can be told beforehand; ''
 * when it may.
 */
function whyNot(name: FabricName, host: string, refusals: HandoffRefusals): string {
  const { reach, dials } = fabricRow(name);
  return whyNotReached(reach, host, hostIdentity()) || refusals[dials];
}

/** Why a client may not offer a fabric: what this connection rules out, else what it has decided. */
function notOffered(name: FabricName, refusals: HandoffRefusals): string {
  const { dials, hasDevice } = fabricRow(name);
  if (refusals[dials] !== '') return refusals[dials];
  const device = hasDevice ? 'has no RDMA device that it can use, or ' : '';
  return `the client does not offer it: it ${device}is told otherwise by its option fabric, or RDMA_RPC_FABRIC there`;
}

/** Fabrics that the client offers and this side can try; the reasons for the others are put down. */
export function common(
  side: LocalSide,
  hello: Hello,
  reasons: FabricReasons,
  refusals: HandoffRefusals,
): FabricName[] {
  return side.fabrics.filter((name) => {
    const offer = hello.fabrics.find((each) => each.name === name);
    const why = offer === undefined ? notOffered(name, refusals) : whyNot(name, offer.host, refusals);
    if (why !== '') reasons.add([{ name, reason: why }]);
    return why === '';
  });
}

/** What a stranger may know of the reasons: not which files, devices and rights this machine lacks. */
export function withoutFor(side: LocalSide, reasons: FabricReasons): FabricReason[] {
  const own = side.without.map(({ name }) => name);
  return reasons.list.map(({ name, reason }) => ({
    name,
    reason: own.includes(name) ? "the server cannot use it ('rdma-rpc devices' says why, there)" : reason,
  }));
}
