/**
 * A look at the certificate of a server, once: for its name or identity, and for what is known of the peer
 * afterwards. Node's own way makes an object of every field of every certificate that the server sends, and
 * parses each once more for that: a tenth of what a connection costs a client. Used when a channel dials.
 */
import { X509Certificate } from 'node:crypto';
import {
  checkServerIdentity,
  type DetailedPeerCertificate,
  type PeerCertificate,
  type TLSSocket,
} from 'node:tls';
import { identityOf } from './certificate.ts';

/** Why a server of this certificate is another than one of `wanted`. */
function identityFault(wanted: readonly string[], certificate: X509Certificate): Error | undefined {
  const found = identityOf(certificate);
  if (found !== undefined && wanted.includes(found)) return undefined;
  return new Error(
    `the server is ${found ?? 'nobody that its certificate names clearly'}, which is not asked for`,
  );
}

/** Why it is not `hostname`, by Node's rules: they read the subject only where there is no other name. */
function nameFault(hostname: string, certificate: X509Certificate): Error | undefined {
  const names = {
    subjectaltname: certificate.subjectAltName,
    subject: {
      get CN() {
        return certificate.toLegacyObject().subject.CN;
      },
    },
  };
  const fault = checkServerIdentity(hostname, names as PeerCertificate);
  // The error has all of the certificate then.
  return fault && (checkServerIdentity(hostname, certificate.toLegacyObject()) ?? fault);
}

export class ServerCertificate {
  readonly #identities: readonly string[] | undefined;
  #socket: TLSSocket | undefined;
  #certificate: X509Certificate | undefined;

  /** `identities`: in place of a name. */
  constructor(identities: readonly string[] | undefined) {
    this.#identities = identities;
  }

  /** The socket whose server it is, before anything has come from there. */
  watch(socket: TLSSocket): void {
    this.#socket = socket;
    // What Node would give to `check`, which does not need it.
    socket.getPeerCertificate = () => ({}) as DetailedPeerCertificate;
  }

  /** For the option `checkServerIdentity`. */
  readonly check = (hostname: string, { raw }: PeerCertificate): Error | undefined => {
    this.#certificate = this.#socket?.getPeerX509Certificate() ?? new X509Certificate(raw);
    return this.#identities === undefined
      ? nameFault(hostname, this.#certificate)
      : identityFault(this.#identities, this.#certificate);
  };

  /** Undefined when nothing was to be checked, since the certificate is not trusted. */
  get seen(): X509Certificate | undefined {
    return this.#certificate;
  }
}
