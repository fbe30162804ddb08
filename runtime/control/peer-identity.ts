/**
 * Determines the identity of the peer of a sideband connection, before the peer has sent anything. For a unix
 * socket, the kernel knows the user and the process. With TLS, the certificate has the identity. Both sides
 * of a handshake use this file.
 */
import { readFileSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import type { Verified } from '../core/peer.ts';
import { loadNative } from '../native/native.ts';
import { descriptorOf } from './socket/handoff.ts';
import { verdictOf } from './tls/certificate.ts';

/**
 * Credentials from the kernel. Process 0 and the overflow ids stand for processes and users that have no
 * number in this namespace.
 */
type PeerCredentials = Readonly<Record<'pid' | 'uid' | 'gid', number>>;

/** The id of users and groups that have no number in this namespace. */
const overflowDefault = 65_534;

function overflowId(kind: 'uid' | 'gid'): number {
  try {
    return Number(readFileSync(`/proc/sys/kernel/overflow${kind}`, 'latin1'));
  } catch {
    return overflowDefault;
  }
}

const unknown = { uid: new Set([overflowDefault]), gid: new Set([overflowDefault]) };
let looked = false;

/**
 * Returns the credentials without ids that the kernel could not express in this namespace, because such an id
 * must not admit a peer.
 */
export function knownOf({ pid, uid, gid }: PeerCredentials): Verified {
  if (!looked) {
    looked = true;
    for (const kind of ['uid', 'gid'] as const) unknown[kind].add(overflowId(kind));
  }
  return {
    ...(pid > 0 && { pid }),
    ...(!unknown.uid.has(uid) && { uid, identity: `uid:${uid}` }),
    ...(!unknown.gid.has(gid) && { gid }),
  };
}

/** Returns the identity of this process, for connections to itself. */
export function ownIdentity(): Verified {
  const { pid, geteuid, getegid } = process;
  // Windows has no numbers for users and groups.
  const known = geteuid === undefined ? { pid } : knownOf({ pid, uid: geteuid(), gid: getegid!() });
  return { ...known, transport: 'process' };
}

/**
 * A stream that is not a socket, because it comes from another thread or from within the process. It has the
 * verified identity of its peer as a property.
 */
export interface Vouched {
  readonly verified?: Verified;
}

/**
 * Answers of the kernel. They describe the peer at the time of connecting, so the kernel does not have to be
 * asked again (unix(7), SO_PEERCRED).
 */
const asked = new WeakMap<Duplex, Verified>();

export function verifiedOf(duplex: Duplex): Verified {
  const verified = (duplex as Vouched).verified ?? verdictOf(duplex) ?? asked.get(duplex);
  if (verified !== undefined) return verified;
  const fd = descriptorOf(duplex);
  const credentials = fd === undefined ? undefined : loadNative().peerCredentials(fd);
  if (credentials === undefined) return {};
  const known = { ...knownOf(credentials), transport: 'unix' } as const;
  asked.set(duplex, known);
  return known;
}
