/**
 * The security level of a session, and the level that a side may require. Both handshakes, servers and
 * session summaries use this file.
 */
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import type { OptionRules } from '../core/options.ts';
import type { SessionOptions } from '../native/native.ts';
import { securityLevels as levels, type SecurityLevel } from '../security-levels.ts';

export type { SecurityLevel };
/** The protection of the queue pair that both sides have agreed on, independent of their identities. */
export type Protection = Exclude<SecurityLevel, 'peer'>;

export interface SecurityOptions {
  /**
   * The lowest accepted security level of a session. A session with a lower level is refused. `peer`: the
   * other side was verified by its certificate or by the kernel. `bound`: in addition, the queue pair is
   * proved to belong to the other side. `sealed`: in addition, no other party can read or change the traffic.
   * A session is sealed when either side requires `sealed`. A channel that requires `bound` or `sealed` also
   * requires a verified server. On a server, this option does not require verified clients: `tls` with a
   * `ca`, `allow` and `authenticate` decide which clients are admitted. Default: `none`.
   */
  require?: SecurityLevel;
}

export const securityRules = {
  require: { kind: 'choice', values: levels, default: 'none' },
} as const satisfies OptionRules;

export interface CheckedSecurity {
  readonly require: SecurityLevel;
}

const remedies: Readonly<Record<SecurityLevel, string>> = {
  none: '',
  peer: 'the other side has to be verified: use tls with certificates, or a unix socket (before Linux 6.16 clients do not learn who serves that)',
  bound: 'queue pairs can only be bound where the handshake is private: use tls or a unix socket',
  sealed: 'the handshake has to be private, by tls or a unix socket, and both sides need a libcrypto',
};

/**
 * Throws when the level of a session is lower than a side requires. `here` names that side in the error.
 * `missing` is the level that the session does not reach.
 */
export function checkLevel(
  here: string,
  required: SecurityLevel,
  level: SecurityLevel,
  missing: SecurityLevel = required,
): void {
  if (levels.indexOf(level) >= levels.indexOf(required)) return;
  throw new RpcError(
    Status.FAILED_PRECONDITION,
    `this connection is '${level}', and the ${here} requires '${required}' (option security.require): ${remedies[missing]}`,
    { processed: 'no' },
  );
}

/**
 * Returns the protection from the client's point of view. `peer` says whether the server was verified. The
 * protection of a connection to an unverified server counts as `none`.
 */
export function protectionOfClient(peer: SecurityLevel, protection: Protection): Protection {
  return peer === 'none' ? 'none' : protection;
}

/** The protection of a session. `seal` contains the cipher and the keys for native code. */
export interface Protected {
  readonly protection: Protection;
  readonly seal?: SessionOptions['seal'];
}

/** Returns the number of the level on the counters page. */
export function levelNumber(level: SecurityLevel): number {
  return levels.indexOf(level) + 1;
}

export function levelOf(peer: 'none' | 'peer', protection: Protection): SecurityLevel {
  return protection === 'none' ? peer : protection;
}
