/**
 * Addresses at which a server would let nobody in, whoever comes: what its options ask of clients cannot be
 * known there. Looked at when it begins to listen, which is when somebody reads what it says.
 */
import type { Address } from '../control/socket/address.ts';
import type { ResolvedServerOptions, ServerOptions } from './server-options.ts';

/** What a listener has to know clients by. */
export interface Ways {
  /** undefined: none. */
  readonly tls: { readonly knowsClients: boolean | undefined; readonly certTrouble: string } | undefined;
  /** Of this process: what sessions can be sealed with. */
  readonly ciphers: readonly string[];
}

const byTls = 'on host:port addresses clients are known by tls with a ca, or with psk';

const isEmpty = (list: unknown): boolean => Array.isArray(list) && list.length === 0;

/** Why nobody can get in; '' when somebody can, and where that depends on functions of the application. */
export function whyNobody(
  { kind }: Address,
  given: ServerOptions | undefined,
  { allow, authenticate, authorize, security: { require } }: ResolvedServerOptions,
  { tls, ciphers }: Ways,
): string {
  if (require === 'sealed' && ciphers.length === 0)
    return "security.require is 'sealed', and this process has no libcrypto to seal with";
  const isTcp = kind === 'tcp';
  if (isTcp && tls === undefined && require !== 'none')
    return `security.require is '${require}', which on host:port addresses takes the option tls`;
  if (isTcp && tls !== undefined && tls.certTrouble !== '') return `the cert of tls ${tls.certTrouble}`;
  if (typeof authorize === 'object' && Object.values(authorize).every(isEmpty))
    return 'the option authorize lets nobody call anything';
  if (given?.allow !== undefined && Object.values(allow).every((list) => list === undefined || isEmpty(list)))
    return 'the option allow names nobody';
  if (authenticate !== undefined) return '';
  const isKnown = !isTcp || (tls !== undefined && tls.knowsClients !== false);
  if (!isKnown && require === 'peer') return `security.require is 'peer', and ${byTls}`;
  if (given?.allow === undefined) return '';
  if (!isKnown) return `the option allow takes clients that are known, and ${byTls}, or by authenticate`;
  const ofUnix = (identity: string): boolean => identity.startsWith('uid:');
  const { uid, gid, identity = [] } = allow;
  if (isTcp)
    return identity.every(ofUnix)
      ? 'the option allow names users and groups only, which unix sockets have'
      : '';
  return uid === undefined && gid === undefined && !identity.some(ofUnix)
    ? "the option allow names no uid, gid or identity 'uid:…', and nothing else is known on unix sockets"
    : '';
}
