/**
 * The client's side of TLS on sideband connections. It verifies the identity of the server, and explains
 * failures. This file is used when a channel dials.
 */
import { isIP } from 'node:net';
import {
  type ConnectionOptions,
  checkServerIdentity,
  connect,
  type DetailedPeerCertificate,
  type PeerCertificate,
  type SecureContext,
  type TLSSocket,
} from 'node:tls';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import { promiseOf, textOf } from '../../core/foreign.ts';
import { type Log, logged, quoted } from '../../core/log.ts';
import { processWarning, type Warn } from '../../core/warnings.ts';
import { tcpKeepAliveMs } from '../../limits.ts';
import type { TcpAddress } from '../socket/address.ts';
import { certified, identityOf, SeenCertificate, vouch } from './certificate.ts';
import { certificateForPsk, noTls, noTlsForPsk, refusedCertificate } from './mismatch.ts';
import { checkPskAlone, PskClient } from './psk.ts';
import {
  type ChannelTls,
  type Checked,
  channelTlsRules,
  secureContext,
  type TlsSet,
  TlsSets,
  type TlsSource,
  UnusableTls,
} from './tls-options.ts';

type CheckServer = NonNullable<ConnectionOptions['checkServerIdentity']>;

/**
 * Converts the result of a check into an error. Any result other than undefined or null is a rejection. Node
 * would treat the result as an error and read its message.
 */
function faultIn(found: unknown): Error | undefined {
  if (found === undefined || found === null || found instanceof Error) return found ?? undefined;
  if (typeof found === 'string') return new Error(found);
  promiseOf(found)?.catch(() => undefined);
  return new Error('checkServerIdentity must return undefined or an Error, and not a promise');
}

/**
 * Wraps the check of the application so that it never throws, because Node calls it where no caller would
 * handle an error.
 */
function guardedCheck(check: CheckServer): CheckServer {
  return (hostname, certificate) => {
    try {
      return faultIn(check(hostname, certificate));
    } catch (error) {
      return new Error(`checkServerIdentity has failed: ${textOf(error)}`);
    }
  };
}

/** Returns a hint when the requested identity and the found identity differ only in their spelling. */
function prefixHint(found: string, asked: readonly string[]): string {
  const [, prefix, name] = /^(dns|ip|subject):(.+)$/.exec(found) ?? [];
  if (name !== undefined && asked.includes(name)) return `; write '${found}' with the prefix ${prefix}:`;
  const uri = `uri:${found}`;
  return asked.includes(uri) ? `; write '${found}' without the prefix uri:` : '';
}

/** Returns the quoted names in a certificate, in the form in which they are written there. */
function namesOf(seen: SeenCertificate | undefined): string {
  return seen === undefined ? 'no names' : quoted(seen.subjectAltName || seen.subject || 'no names');
}

/** Describes the names in a certificate that does not contain the name of the server. */
function foundIn({ cert }: Error & { readonly cert?: unknown }): string {
  const seen = SeenCertificate.of(cert as PeerCertificate);
  if (seen === undefined) return '';
  const found = identityOf(seen);
  return found === undefined ? `; the certificate has ${namesOf(seen)}` : `, such as identity: '${found}'`;
}

/**
 * Returns the function that checks the server's certificate in place of Node's own check, or undefined when
 * Node's own check is to be used.
 */
export function checkOf({ identity, checkServerIdentity }: Checked<ChannelTls>): CheckServer | undefined {
  if (checkServerIdentity !== undefined) return guardedCheck(checkServerIdentity);
  if (identity === undefined) return undefined;
  return guardedCheck((_, certificate) => {
    const seen = SeenCertificate.of(certificate);
    const found = seen && identityOf(seen);
    if (found !== undefined && identity.includes(found)) return undefined;
    const shown = found ?? `without an unambiguous name (its certificate has ${namesOf(seen)})`;
    return new Error(
      `the server is ${shown}, which the option identity does not list${prefixHint(found ?? '', identity)}`,
    );
  });
}

/**
 * Avoids work of Node. To check a server, Node parses all authorities of the server's certificate again. This
 * parsing takes a tenth of a client's time for a connection, and only functions of the application need it.
 * Node also parses the certificate again each time it is requested, although it does not change after the
 * handshake.
 */
function withoutAuthorities(socket: TLSSocket): void {
  const certificate = socket.getPeerCertificate;
  let seen: DetailedPeerCertificate | undefined;
  socket.getPeerCertificate = () => {
    seen ??= certificate.call(socket) as DetailedPeerCertificate;
    return seen;
  };
}

/** The codes with which OpenSSL and Node report an answer that is not TLS. */
const plainCodes = new Set(['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG', 'EPROTO']);
/**
 * The error text when the server has ended the connection. The reason is not known here. For example, the
 * server may have no usable certificate.
 */
const endedText = 'the server ended the connection in the TLS handshake; the log of the server may say why';
/**
 * The error text for a PSK that the server does not accept. The server does not reveal whether it lacks the
 * name or has another key.
 */
const noKey = 'the server has no such key under this name (option tls: psk of the channel)';
/**
 * Matches OpenSSL's code for a TLS alert of the server. From OpenSSL 3.5 on, some codes contain
 * `SSL/TLS_ALERT`.
 */
const alertCode = /^ERR_SSL_[\w/]+_ALERT_/;
/** Matches OpenSSL's codes for a failed handshake. Codes for a rejected certificate lack this prefix. */
const openSslCode = /^ERR_SSL_/;
/** Matches the error codes of the system for an unreachable or closed peer. */
const networkCode = /^E[A-Z]+$/;

const ofChannel = 'option tls of the channel';
const authority = `${ofChannel}: ca must contain the authority of the server's certificate`;
/** Remedies by the codes of OpenSSL and Node. The command line replaces the options by its flags. */
const nextSteps: ReadonlyMap<string, string> = new Map([
  ['SELF_SIGNED_CERT_IN_CHAIN', authority],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', authority],
  ['UNABLE_TO_GET_ISSUER_CERT', authority],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', authority],
  // The server has sent only its own certificate. This side does not know whether intermediate authorities
  // are missing.
  [
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    `${ofChannel}: ca must contain the authority of the server's certificate, and the server's option cert must contain the intermediate certificates`,
  ],
  ['ERR_TLS_CERT_ALTNAME_INVALID', `${ofChannel}: servername or identity must be a name in the certificate`],
  ['CERT_HAS_EXPIRED', 'renew the certificate of the server, or that of its authority'],
  ['CERT_NOT_YET_VALID', 'compare the clocks of both machines; the certificate may be that of the authority'],
]);

/**
 * Returns the remedy for a rejected server certificate. When the error has no code, one of this side's
 * options has rejected the certificate.
 */
function nextStep(
  error: Error & { code?: string },
  { checkServerIdentity, identity }: Checked<ChannelTls>,
): string {
  const { code = '' } = error;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return `${code}; ${nextSteps.get(code)}${foundIn(error)}`;
  if (code !== '') return `${code}; ${nextSteps.get(code) ?? ofChannel}`;
  if (checkServerIdentity !== undefined) return `${ofChannel}: checkServerIdentity`;
  return identity === undefined ? ofChannel : `${ofChannel}: identity`;
}

function explained(error: Error & { code?: string }, options: Checked<ChannelTls>): Error {
  const { code = '' } = error;
  const hasKey = options.psk !== undefined;
  const refused = (text: string): RpcError =>
    new RpcError(Status.UNAUTHENTICATED, text, { processed: 'no', cause: error });
  if (plainCodes.has(code)) return refused(hasKey ? noTlsForPsk : noTls);
  // A server that has the key shows no certificate. An error about its certificate therefore means that it
  // does not have the key.
  if (hasKey && !networkCode.test(code)) return refused(openSslCode.test(code) ? noKey : certificateForPsk);
  if (code === 'ECONNRESET') return new Error(endedText, { cause: error });
  if (networkCode.test(code) && code !== 'EPROTO') return error;
  if (alertCode.test(code)) return refused(refusedCertificate);
  return refused(`the server's certificate is not accepted: ${error.message} (${nextStep(error, options)})`);
}

function madeOf(options: Checked<ChannelTls>): SecureContext | PskClient {
  if (options.psk === undefined) return secureContext(options);
  checkPskAlone(options);
  return new PskClient(options.psk);
}

type Sets = TlsSets<ChannelTls, SecureContext | PskClient>;

/**
 * Parsed options of sources that are functions. They are cached because parsing certificates takes as long as
 * a handshake, and channels to many servers may share one source.
 */
const shared = new WeakMap<object, Sets>();

function setsOf(source: TlsSource<ChannelTls>): Sets {
  const known = shared.get(source);
  if (known !== undefined) return known;
  const sets: Sets = new TlsSets('createChannel: tls', source, channelTlsRules, madeOf);
  // Objects are not cached, because the application may change them before it creates the next channel.
  if (typeof source === 'function') shared.set(source, sets);
  return sets;
}

export class TlsDial {
  readonly #sets: Sets;
  readonly #servername: string | undefined;
  readonly #warn: Warn;
  /** The last logged error of this side's own TLS options. */
  #told = '';

  /**
   * Throws for invalid options. `servername` is given when the dialled address is not the address that the
   * user typed. It is used when the options have no `servername`. `log` is the log of the channel.
   */
  constructor(source: TlsSource<ChannelTls>, servername?: string, log?: Log) {
    this.#servername = servername;
    this.#warn = log === undefined ? processWarning : logged(log);
    this.#sets = setsOf(source);
  }

  /**
   * Prepares the options of a connection and resolves with the function that connects. Rejects when the
   * application's function rejects. Rejects with FAILED_PRECONDITION for unusable options, so that calls are
   * not retried; the reason is also logged for callers that wait until the options are fixed. `onConnected`
   * is called when the socket is connected, before the TLS handshake.
   */
  async ready(): Promise<
    (address: TcpAddress, signal: AbortSignal, onConnected?: () => void) => Promise<TLSSocket>
  > {
    const set = await this.#current();
    return (address, signal, onConnected) => this.#secure(address, set, signal, onConnected);
  }

  async #current(): Promise<TlsSet<ChannelTls, SecureContext | PskClient>> {
    try {
      const set = await this.#sets.current(this.#warn);
      this.#told = '';
      return set;
    } catch (error) {
      if (!(error instanceof UnusableTls)) throw error;
      const { message } = error;
      if (message !== this.#told) this.#warn(`${message}; no connection is made until this is fixed`);
      this.#told = message;
      throw new RpcError(Status.FAILED_PRECONDITION, message, { processed: 'no', cause: error });
    }
  }

  /** Connects. Rejects with the signal's reason when the signal is aborted. */
  #secure(
    { host, port }: TcpAddress,
    { options, made }: TlsSet<ChannelTls, SecureContext | PskClient>,
    signal: AbortSignal,
    onConnected?: () => void,
  ): Promise<TLSSocket> {
    // When the host is an address of a server that has a name, the certificate is verified against the name.
    const name = options.servername || this.#servername || host;
    const check = checkOf(options) ?? checkServerIdentity;
    const psk = made instanceof PskClient ? made : undefined;
    return new Promise((resolve, reject) => {
      // TLS connects by itself here, because TLS on a connected socket would create all objects of a socket
      // twice.
      const secured = connect({
        host,
        port,
        ...(psk === undefined ? { secureContext: made as SecureContext } : psk.options),
        minVersion: 'TLSv1.3',
        // An IP address must not be sent as a server name.
        ...(isIP(name) === 0 && { servername: name }),
        rejectUnauthorized: options.rejectUnauthorized ?? true,
        checkServerIdentity: (_, certificate) => check(name, certificate),
      });
      if (options.checkServerIdentity === undefined) withoutAuthorities(secured);
      let connected = false;
      const giveUp = (): void => {
        secured.destroy();
        reject(signal.reason);
      };
      const failed = (error: Error): void => {
        secured.destroy();
        signal.removeEventListener('abort', giveUp);
        reject(connected ? explained(error, options) : error);
      };
      const closed = (): void => {
        secured.destroy();
        signal.removeEventListener('abort', giveUp);
        reject(new Error(endedText));
      };
      signal.addEventListener('abort', giveUp, { once: true });
      secured.once('connect', () => {
        connected = true;
        onConnected?.();
        secured.setNoDelay(true).setKeepAlive(true, tcpKeepAliveMs);
      });
      secured.once('error', failed).once('close', closed);
      secured.once('secureConnect', () => {
        secured.off('error', failed).off('close', closed);
        const verified = psk === undefined ? certified(secured, false) : psk.verified(secured);
        if (verified === undefined) {
          failed(new Error(certificateForPsk));
          return;
        }
        signal.removeEventListener('abort', giveUp);
        vouch(secured, verified);
        // An idle channel does not keep the process alive, as with plain connections.
        secured.unref();
        resolve(secured);
      });
    });
  }
}
