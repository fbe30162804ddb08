/**
 * Determines which fabrics a server can try with a client, from the hello and the connection, and why it
 * cannot try the other fabrics. server-handshake.ts uses this file.
 */
import { type FabricName, fabricRow } from '../../fabrics.ts';
import type { FabricOffer, FabricReason, Hello } from '../frames.ts';
import { hostIdentity, whyNotReached } from '../host.ts';
import type { HandoffRefusals } from '../socket/handoff.ts';
import type { FabricReasons } from './fabric-reasons.ts';
import type { LocalSide } from './session-setup.ts';

/**
 * Returns the reason why a client with this version of a fabric cannot use the fabric, or '' when it can.
 * Builds before 0.1.0 send no version.
 */
function otherFabricVersion(name: FabricName, client: number | undefined): string {
  const { version, dials } = fabricRow(name);
  if (client === undefined || client === version) return '';
  const elsewhere = dials === 'hostPort' ? '' : ', or the fabric tcp at a host:port';
  return `the client has version ${client} of it, the server version ${version}; use the same rdma-rpc release on both sides${elsewhere}`;
}

/**
 * Returns the reason why a client with this offer cannot use this fabric over this connection, or '' when
 * this side knows no reason yet.
 */
function whyNot(name: FabricName, { host, version }: FabricOffer, refusals: HandoffRefusals): string {
  const { reach, dials } = fabricRow(name);
  return whyNotReached(reach, host, hostIdentity()) || refusals[dials] || otherFabricVersion(name, version);
}

/**
 * Returns the reason why the client did not offer a fabric. The reason is either that the fabric is
 * impossible over this connection, or that the client decided not to offer it.
 */
function notOffered(name: FabricName, refusals: HandoffRefusals): string {
  const { dials, hasDevice } = fabricRow(name);
  if (refusals[dials] !== '') return refusals[dials];
  const device = hasDevice ? 'has no RDMA device that it can use, or ' : '';
  return `the client does not offer it: it ${device}has other fabrics in its option fabric or RDMA_RPC_FABRIC`;
}

/**
 * Returns the fabrics that the client offers and this side can try, and records why it cannot try the other
 * fabrics.
 */
export function common(
  side: LocalSide,
  hello: Hello,
  reasons: FabricReasons,
  refusals: HandoffRefusals,
): FabricName[] {
  return side.fabrics.filter((name) => {
    const offer = hello.fabrics.find((each) => each.name === name);
    const why = offer === undefined ? notOffered(name, refusals) : whyNot(name, offer, refusals);
    if (why !== '') reasons.add([{ name, reason: why }]);
    return why === '';
  });
}

/**
 * Returns the reasons in a form for unauthenticated clients, which does not name the files, devices and
 * rights that this machine lacks.
 */
export function withoutFor(side: LocalSide, reasons: FabricReasons): FabricReason[] {
  const own = side.without.map(({ name }) => name);
  return reasons.list.map(({ name, reason }) => ({
    name,
    reason: own.includes(name) ? "the server cannot use it ('rdma-rpc devices' says why, there)" : reason,
  }));
}
