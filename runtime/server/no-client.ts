/**
 * Detects addresses on which a server could not accept any client, because the server's options require
 * something that cannot be verified there. This is checked when a server begins to listen, so that the
 * warning is noticed.
 */
import type { Address } from '../control/socket/address.ts';
import type { ResolvedServerOptions, ServerOptions } from './server-options.ts';

/** The means by which a listener can identify clients. */
export interface Ways {
  /** Undefined when the listener does not use TLS. */
  readonly tls: { readonly knowsClients: boolean | undefined; readonly certTrouble: string } | undefined;
  /** The ciphers of this process for sealed sessions. */
  readonly ciphers: readonly string[];
}

const byTls = 'on host:port addresses clients are identified only by tls with a ca or psk';

const isEmpty = (list: unknown): boolean => Array.isArray(list) && list.length === 0;

/**
 * Returns the reason why no client can be accepted. Returns '' when clients can be accepted, or when
 * functions of the application decide.
 */
export function whyNoClient(
  { kind }: Address,
  given: ServerOptions | undefined,
  { allow, authenticate, authorize, security: { require } }: ResolvedServerOptions,
  { tls, ciphers }: Ways,
): string {
  if (require === 'sealed' && ciphers.length === 0)
    return "security.require is 'sealed', but this process has no libcrypto";
  const isTcp = kind === 'tcp';
  if (isTcp && tls === undefined && require !== 'none')
    return `security.require is '${require}', which needs the option tls on host:port addresses`;
  if (isTcp && tls !== undefined && tls.certTrouble !== '') return `the cert of tls ${tls.certTrouble}`;
  if (typeof authorize === 'object' && Object.values(authorize).every(isEmpty))
    return 'the option authorize allows no calls';
  if (given?.allow !== undefined && Object.values(allow).every((list) => list === undefined || isEmpty(list)))
    return 'the option allow is empty';
  if (authenticate !== undefined) return '';
  const isKnown = !isTcp || (tls !== undefined && tls.knowsClients !== false);
  if (!isKnown && require === 'peer') return `security.require is 'peer', but ${byTls}`;
  if (given?.allow === undefined) return '';
  if (!isKnown) return `the option allow needs clients with an identity, but ${byTls}, or by authenticate`;
  const ofUnix = (identity: string): boolean => identity.startsWith('uid:');
  const { uid, gid, identity = [] } = allow;
  if (isTcp)
    return identity.every(ofUnix)
      ? 'the option allow names only users and groups, which are known only on unix sockets'
      : '';
  return uid === undefined && gid === undefined && !identity.some(ofUnix)
    ? "the option allow names no uid, gid or identity 'uid:…', but nothing else is known on unix sockets"
    : '';
}
