/**
 * Who is at the other end of a sideband connection, before it has said a word: the user and process behind a
 * unix socket, by the kernel; by TLS, what its certificate says. Used by both sides of a handshake.
 */
import { readFileSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import type { Verified } from '../core/peer.ts';
import { loadNative } from '../native/native.ts';
import { descriptorOf } from './socket/handoff.ts';
import { verdictOf } from './tls/certificate.ts';

/** As the kernel gives them: process 0 and the overflow ids stand for what this namespace cannot name. */
type PeerCredentials = Readonly<Record<'pid' | 'uid' | 'gid', number>>;

/** What stands for users and groups that have no number in this namespace. */
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

/** Without what the kernel could not name here: nobody is let in by that. */
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

/** This process, as a peer of itself. */
export function ownIdentity(): Verified {
  const { pid } = process;
  return { ...knownOf({ pid, uid: process.geteuid!(), gid: process.getegid!() }), transport: 'process' };
}

/**
 * A stream that is no socket brings with it what is known: one from another thread, or within the process.
 */
export interface Vouched {
  readonly verified?: Verified;
}

/**
 * What the kernel has said: that of the moment of connecting, so it need not be asked again (unix(7),
 * SO_PEERCRED).
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
