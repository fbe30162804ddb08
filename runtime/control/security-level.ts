/**
 * What a session promises in one word, and what a side may demand of it. Used by both handshakes, servers and
 * summaries of sessions.
 */
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import type { OptionRules } from '../core/options.ts';
import type { SessionOptions } from '../native/native.ts';
import { securityLevels as levels, type SecurityLevel } from '../security-levels.ts';

export type { SecurityLevel };
/** What the two sides have agreed on for the queue pair, whoever they are. */
export type Guard = Exclude<SecurityLevel, 'peer'>;

export interface SecurityOptions {
  /**
   * The least that a session may promise: `peer`: the other side was verified, by its certificate or the
   * kernel. `bound`: the queue pair is proved to be the other side's. `sealed`: and nobody else can read or
   * change what passes; sessions are sealed when one side requires it. One that promises less is refused. A
   * channel that requires `bound` or `sealed` requires to know its server as well; a server does not require
   * to know its clients by that: `tls` with a `ca`, `allow` and `authenticate` say who gets in. Default:
   * `none`.
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
 * Throws when a session would promise less than a side demands. `here`: which side that is, for people;
 * `missing`: the level that it does not reach.
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
 * `peer`: what is known of the other side. A client that does not know its server is promised nothing,
 * however well guarded the way to it is.
 */
export function guardOfClient(peer: SecurityLevel, guard: Guard): Guard {
  return peer === 'none' ? 'none' : guard;
}

/** How a session is guarded; `seal`: what native code seals it with. */
export interface Guarded {
  readonly guard: Guard;
  readonly seal?: SessionOptions['seal'];
}

/** As the counters page has it. */
export function levelNumber(level: SecurityLevel): number {
  return levels.indexOf(level) + 1;
}

export function levelOf(peer: 'none' | 'peer', guard: Guard): SecurityLevel {
  return guard === 'none' ? peer : guard;
}
