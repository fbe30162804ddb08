/**
 * The server's side of TLS on sideband connections. They come to the same port as connections of the tcp
 * fabric, so the first bytes have been read when one is given to this. Used by the links of a server, and by
 * a worker group for all its workers.
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

/** The two ends of a connection: no other that is open has the same. */
const placeOf = ({ remoteAddress, remotePort, localAddress, localPort }: Socket): string =>
  [remoteAddress, remotePort, localAddress, localPort].join(' ');

/**
 * An alert that the client has sent: its name follows, in OpenSSL's spelling. In front of it stands `TLSV1`
 * or `SSLV3`, and for some of them `SSL/TLS` from OpenSSL 3.5 on, which Node 24 has.
 */
const alertCode = /^ERR_SSL_[\w/]+?_ALERT_(\w+)$/;
/**
 * Those with which it says that it does not take this side's certificate (RFC 8446, 6.2). OpenSSL says
 * `decrypt error` for a wrong signature, of an authority by the same name for one.
 */
const certificateAlert = /^(unknown ca|decrypt error|.*certificate.*)$/;

/** What went wrong, for the log: OpenSSL's own text names places in its sources. */
function saidOf({ code = '', message }: NodeJS.ErrnoException): string {
  const alert = alertCode.exec(code)?.[1]?.replaceAll('_', ' ').toLowerCase();
  // OpenSSL ends its texts with a line break.
  if (alert === undefined) return oneLine(message);
  const what = certificateAlert.test(alert)
    ? "the client does not accept this server's certificate: its TLS alert is"
    : 'the client does not go on: its TLS alert is';
  return `${what} '${alert}'`;
}

/**
 * What OpenSSL says of a client with another key than that of the name which it gives, or with a name that
 * nobody has.
 */
const wrongKey = 'ERR_SSL_BINDER_DOES_NOT_VERIFY';

/** Why clients do not take a certificate now, whatever authorities they trust; '' where that is not known. */
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
  /** Who listens has been told of the certificate. */
  #isReady = false;

  /** Throws for options that cannot be used. `warn`: told of files that have changed and cannot be used. */
  constructor(what: string, source: TlsSource<ServerTls>, warn: Warn) {
    this.#warn = warn;
    this.#what = `${what}: tls`;
    this.#sets = new TlsSets(this.#what, source, serverTlsRules, (options) => this.#serverOf(options));
  }

  /** Rejects when files of certificates cannot be read or used: known when a server begins to listen. */
  async ready(): Promise<void> {
    await this.#sets.ready(this.#warn);
    this.#isReady = true;
  }

  /** Why clients do not take its certificate, whatever they trust; '' where that is not known. */
  get certTrouble(): string {
    return troubleOf(this.#sets.newest?.options.cert);
  }

  /** Whether it finds out who clients are; undefined: a function says so, for connections only. */
  get knowsClients(): boolean | undefined {
    const options = this.#sets.newest?.options;
    if (options === undefined) return undefined;
    return options.psk !== undefined || (options.requestCert ?? options.ca !== undefined);
  }

  /**
   * Resolves when keys have been agreed, whoever the client is: `verdictOf` tells. Rejects with why there is
   * no TLS, which is an RpcError when the client has shown a wrong key. `socket` ends with it either way.
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
        // Somebody else may have come from there since.
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
    if (cert === undefined || key === undefined) throw new TypeError('a server has a cert and a key (PEM)');
    if (requestCert && ca === undefined)
      throw new TypeError('requestCert needs the ca that signs the certificates of clients');
    if (checkClientIdentity !== undefined && !requestCert)
      throw new TypeError('checkClientIdentity needs the ca that signs the certificates of clients');
    // Alone it looks as if somebody were refused.
    if (crl !== undefined && !requestCert)
      throw new TypeError('crl needs the ca that signs the certificates of clients');
    // For its errors, which name what is wrong.
    secureContext(options);
    // Until then nobody comes, and `certTrouble` says it.
    const trouble = this.#isReady ? troubleOf(cert) : '';
    if (trouble !== '') this.#warn(`${this.#what}: the cert ${trouble}: clients do not take it`);
    const server = createServer({
      cert: bufferOf(cert),
      key: bufferOf(key),
      ...(passphrase !== '' && { passphrase }),
      ...(ca !== undefined && { ca: buffersOf(ca) }),
      ...(crl !== undefined && { crl: buffersOf(crl) }),
      minVersion: 'TLSv1.3',
      // Those that are not trusted are told so, in a frame.
      requestCert,
      rejectUnauthorized: false,
      // None is resumed: a certificate is looked at each time, since it may have been revoked.
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

  /** `shownBy`: what a client has called itself with which there is no TLS, for the log. */
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
 * Ways in for what is no frame, with TLS where it is asked for. `turn`: resolves when a handshake may begin,
 * and TLS with it; undefined: now.
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
  return { handOff, secure };
}
