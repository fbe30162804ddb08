/**
 * Determines, from the hello and the connection, which fabrics a server can try with a client, and the
 * reasons why not the others. Used by server-handshake.ts.
 */
import { type FabricName, fabricRow } from '../../fabrics.ts';
import type { FabricReason, Hello } from '../frames.ts';
import { hostIdentity, whyNotReached } from '../host.ts';
import type { HandoffRefusals } from '../socket/handoff.ts';
import type { FabricReasons } from './fabric-reasons.ts';
import type { LocalSide } from './session-setup.ts';

/**
 * Returns why a client on that host cannot use this fabric over this connection, as far as that is known
 * beforehand; '' when it may be possible.
 */
function whyNot(name: FabricName, host: string, refusals: HandoffRefusals): string {
  const { reach, dials } = fabricRow(name);
  return whyNotReached(reach, host, hostIdentity()) || refusals[dials];
}

/**
 * Returns why the client did not offer a fabric: what this connection rules out, otherwise that the client
 * has decided so.
 */
function notOffered(name: FabricName, refusals: HandoffRefusals): string {
  const { dials, hasDevice } = fabricRow(name);
  if (refusals[dials] !== '') return refusals[dials];
  const device = hasDevice ? 'has no RDMA device that it can use, or ' : '';
  return `the client does not offer it: it ${device}is told otherwise by its option fabric, or RDMA_RPC_FABRIC there`;
}

/**
 * Returns the fabrics that the client offers and this side can try, and records the reasons for the others.
 */
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

/**
 * Returns the reasons in a form for unauthenticated clients: without the files, devices and rights that this
 * machine lacks.
 */
export function withoutFor(side: LocalSide, reasons: FabricReasons): FabricReason[] {
  const own = side.without.map(({ name }) => name);
  return reasons.list.map(({ name, reason }) => ({
    name,
    reason: own.includes(name) ? "the server cannot use it ('rdma-rpc devices' says why, there)" : reason,
  }));
}
