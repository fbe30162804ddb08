/**
 * The server's side of TLS on sideband connections. Sideband connections arrive at the same port as
 * connections of the tcp fabric. Therefore the first bytes of a connection have already been read when it is
 * passed to this class. The links of a server use this file, and a worker group uses it for all its workers.
 */
import { constants, X509Certificate } from 'node:crypto';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import { wallMs } from '../../clock.ts';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import { oneLine } from '../../core/log.ts';
import type { Verified } from '../../core/peer.ts';
import type { Warn } from '../../core/warnings.ts';
import { type Handoff, handOff } from '../socket/handoff.ts';
import { certified, vouch } from './certificate.ts';
import { plainRefusedByPsk } from './mismatch.ts';
import { bufferOf, buffersOf, type Pem } from './pem.ts';
import { checkPskAlone, type PskKeys, PskServer } from './psk.ts';
import {
  type Checked,
  type ServerTls,
  secureContext,
  serverTlsRules,
  TlsSets,
  type TlsSource,
} from './tls-options.ts';
import { tlsClosed } from './tls-records.ts';

/** Returns both addresses of a connection, which are unique among the open connections. */
const placeOf = ({ remoteAddress, remotePort, localAddress, localPort }: Socket): string =>
  [remoteAddress, remotePort, localAddress, localPort].join(' ');

/**
 * Matches OpenSSL's code for a TLS alert of the client, which ends with the name of the alert. The code
 * begins with `TLSV1` or `SSLV3` or, for some alerts from OpenSSL 3.5 on (Node 24), with `SSL/TLS`.
 */
const alertCode = /^ERR_SSL_[\w/]+?_ALERT_(\w+)$/;
/**
 * Matches the alerts by which a client rejects this server's certificate (RFC 8446, 6.2). OpenSSL sends
 * `decrypt error` for a wrong signature, for example a signature of another authority with the same name.
 */
const certificateAlert = /^(unknown ca|decrypt error|.*certificate.*)$/;

/** Describes an error for the log, without the source positions in OpenSSL's own text. */
function saidOf({ code = '', message }: NodeJS.ErrnoException): string {
  const alert = alertCode.exec(code)?.[1]?.replaceAll('_', ' ').toLowerCase();
  // OpenSSL's texts end with a line break.
  if (alert === undefined) return oneLine(message);
  const what = certificateAlert.test(alert)
    ? "the client does not accept this server's certificate: its TLS alert is"
    : 'the client has ended the TLS handshake: its alert is';
  return `${what} '${alert}'`;
}

/** OpenSSL's code for a client whose key does not match its name, or whose name is unknown. */
const wrongKey = 'ERR_SSL_BINDER_DOES_NOT_VERIFY';

/** Returns the reason why every client must reject a certificate now, or '' when no such reason is known. */
function troubleOf(cert: Pem | undefined): string {
  if (cert === undefined) return '';
  const { validFrom, validTo } = new X509Certificate(bufferOf(cert));
  const [begin, end] = [new Date(validFrom), new Date(validTo)];
  if (end.getTime() < wallMs()) return `has expired on ${end.toISOString()}`;
  return begin.getTime() > wallMs() ? `is not valid before ${begin.toISOString()}` : '';
}

interface Waiting {
  readonly resolve: (secured: TLSSocket) => void;
  readonly reject: (error: Error) => void;
}

export class TlsAcceptor {
  readonly #what: string;
  readonly #sets: TlsSets<ServerTls, Server>;
  readonly #waiting = new Map<string, Waiting>();
  readonly #warn: Warn;
  /** True after `ready`. Problems of the first certificate have been reported by then. */
  #isReady = false;

  /** Throws for invalid options. `warn` is called when files have changed and cannot be used. */
  constructor(what: string, source: TlsSource<ServerTls>, warn: Warn) {
    this.#warn = warn;
    this.#what = `${what}: tls`;
    this.#sets = new TlsSets(this.#what, source, serverTlsRules, (options) => this.#serverOf(options));
  }

  /**
   * Reads the certificate files. Rejects when the files cannot be read or used, so that a server reports the
   * error when it begins to listen.
   */
  async ready(): Promise<void> {
    await this.#sets.ready(this.#warn);
    this.#isReady = true;
  }

  /** The reason why every client must reject the server's certificate, or '' when no such reason is known. */
  get certTrouble(): string {
    return troubleOf(this.#sets.newest?.options.cert);
  }

  /**
   * Whether the server verifies the identity of clients. It is undefined when a function decides this for
   * each connection.
   */
  get knowsClients(): boolean | undefined {
    const options = this.#sets.newest?.options;
    if (options === undefined) return undefined;
    return options.psk !== undefined || (options.requestCert ?? options.ca !== undefined);
  }

  /** The error text for a client without TLS, if it is not the usual one. */
  get plainRefused(): string | undefined {
    return this.#sets.newest?.options.psk === undefined ? undefined : plainRefusedByPsk;
  }

  /**
   * Performs the TLS handshake on `socket`. Also resolves for clients without a trusted certificate;
   * `verdictOf` returns the identity of the client. Rejects with the reason of a failure, which is an
   * RpcError when the client has used a wrong key. The TLS socket owns `socket` from the call on.
   */
  async secure(socket: Socket): Promise<TLSSocket> {
    const { made: server } = await this.#sets.current(this.#warn);
    return new Promise<TLSSocket>((resolve, reject) => {
      if (socket.destroyed) {
        reject(new Error('the connection was closed'));
        return;
      }
      const place = placeOf(socket);
      const closed = (): void => {
        // By now a new connection may have the same addresses, so the entry is checked before it is deleted.
        if (this.#waiting.get(place) === waiting) this.#waiting.delete(place);
        reject(new Error(tlsClosed));
      };
      const waiting: Waiting = {
        resolve: (secured) => {
          socket.off('close', closed);
          resolve(secured);
        },
        reject,
      };
      socket.once('close', closed);
      this.#waiting.set(place, waiting);
      server.emit('connection', socket);
    });
  }

  #serverOf(options: Checked<ServerTls>): Server {
    const {
      cert,
      key,
      passphrase,
      ca,
      crl,
      requestCert = ca !== undefined,
      rejectUnauthorized = true,
      checkClientIdentity,
    } = options;
    if (options.psk !== undefined) return this.#pskServerOf(options, options.psk);
    if (cert === undefined || key === undefined) throw new TypeError('a server needs a cert and a key (PEM)');
    if (requestCert && ca === undefined)
      throw new TypeError('requestCert needs the ca that signs the certificates of clients');
    if (checkClientIdentity !== undefined && !requestCert)
      throw new TypeError('checkClientIdentity needs the ca that signs the certificates of clients');
    // Without client certificates `crl` has no effect, although it seems to refuse clients.
    if (crl !== undefined && !requestCert)
      throw new TypeError('crl needs the ca that signs the certificates of clients');
    // This call is made only because its error texts name the wrong option.
    secureContext(options);
    // Before `ready` no client can connect, and `certTrouble` reports the problem.
    const trouble = this.#isReady ? troubleOf(cert) : '';
    if (trouble !== '') this.#warn(`${this.#what}: the cert ${trouble}: clients do not accept it`);
    const server = createServer({
      cert: bufferOf(cert),
      key: bufferOf(key),
      ...(passphrase !== '' && { passphrase }),
      ...(ca !== undefined && { ca: buffersOf(ca) }),
      ...(crl !== undefined && { crl: buffersOf(crl) }),
      minVersion: 'TLSv1.3',
      // Untrusted certificates are accepted here. Such clients are refused later by a frame that says why.
      requestCert,
      rejectUnauthorized: false,
      // Sessions are not resumed, so that the certificate is checked for each connection. The certificate may
      // have been revoked in the meantime.
      secureOptions: constants.SSL_OP_NO_TICKET,
    });
    return this.#serving(server, (secured) =>
      requestCert ? certified(secured, rejectUnauthorized, checkClientIdentity) : { transport: 'tls' },
    );
  }

  #pskServerOf(options: Checked<ServerTls>, keys: PskKeys): Server {
    checkPskAlone(options);
    const psk = new PskServer(keys);
    const server = createServer({
      minVersion: 'TLSv1.3',
      secureOptions: constants.SSL_OP_NO_TICKET,
      ...psk.options,
    });
    return this.#serving(
      server,
      (secured) => psk.verified(secured) ?? { transport: 'tls', refused: 'no key' },
      (secured) => psk.shownBy(secured),
    );
  }

  /**
   * Listens to the events of a TLS server, and returns this server. `shownBy` describes a refused client for
   * the log.
   */
  #serving(
    server: Server,
    verifiedOf: (secured: TLSSocket) => Verified,
    shownBy: (secured: TLSSocket) => string = () => '',
  ): Server {
    server.on('secureConnection', (secured) => {
      vouch(secured, verifiedOf(secured));
      if (!this.#take(secured, (waiting) => waiting.resolve(secured))) secured.destroy();
    });
    server.on('tlsClientError', (error, secured) => {
      const shown = shownBy(secured);
      const said = saidOf(error);
      const text = shown === '' ? said : `${said}: ${shown}`;
      const why =
        (error as NodeJS.ErrnoException).code === wrongKey
          ? new RpcError(Status.UNAUTHENTICATED, text, { processed: 'no', cause: error })
          : new Error(text, { cause: error });
      this.#take(secured, (waiting) => waiting.reject(why));
      secured.destroy();
    });
    return server;
  }

  #take(secured: TLSSocket, then: (waiting: Waiting) => void): boolean {
    const place = placeOf(secured);
    const waiting = this.#waiting.get(place);
    this.#waiting.delete(place);
    if (waiting !== undefined) then(waiting);
    return waiting !== undefined;
  }
}

/**
 * Returns the handoff of a server's links. The handoff takes the data connections of sessions and, if the
 * server uses TLS, connections with TLS. `turn` returns undefined when a TLS handshake may begin now,
 * otherwise a promise that resolves when it may begin.
 */
export function handoffOf(
  duplex: Duplex,
  tls: TlsAcceptor | undefined,
  turn: () => Promise<void> | undefined,
): Handoff {
  if (tls === undefined || !(duplex instanceof Socket) || duplex.remoteAddress === undefined)
    return { handOff };
  const secure = async (): Promise<Duplex> => {
    await turn();
    return tls.secure(duplex);
  };
  return { handOff, secure, plainRefused: tls.plainRefused };
}
