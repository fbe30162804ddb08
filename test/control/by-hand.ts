/**
 * Implements a client whose frames a test sends one by one. The tests of the server's handshake use it.
 */
import { duplexPair } from 'node:stream';
import { type Frame, magic, version } from '../../runtime/control/frames.ts';
import type { LocalSide } from '../../runtime/control/handshake/session-setup.ts';
import { hostIdentity } from '../../runtime/control/host.ts';
import { Link } from '../../runtime/control/link.ts';
import type { RpcServer } from '../../runtime/server/server.ts';

export const limits = { inflightMax: 4, streamsMax: 2, messageMaxBytes: 65536, slotBytes: 8192 } as const;

/** Returns a valid first frame with these `changes`. */
export const hello = (changes: object = {}): Frame =>
  ({
    type: 'hello',
    magic,
    version,
    features: 0,
    limits,
    fabrics: [{ name: 'sim', host: hostIdentity() }],
    identity: 'script',
    ...changes,
  }) as Frame;

/** A side that connects with these limits. */
export const side: LocalSide = {
  role: 'client',
  inflightMax: 4,
  streamsMax: 2,
  messageMaxBytes: 65536,
  fabrics: ['sim'],
  without: [],
  verbs: {},
  isolated: false,
  require: 'none',
  identity: 'script',
  log: () => undefined,
};

/** Returns a connection to the server on which no frame has been sent yet. */
export function linkTo(server: RpcServer): Link {
  const [near, far] = duplexPair();
  server.accept(far, 'script');
  return new Link(near);
}
