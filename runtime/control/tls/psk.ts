/**
 * Secrets that both sides share, where nobody issues certificates: external pre-shared keys of TLS 1.3 (RFC
 * 8446), with an ephemeral key exchange beside them, so that who learns a key later reads nothing of before.
 * Used by both sides of TLS. No error names a key.
 */
import { randomBytes } from 'node:crypto';
import type { ConnectionOptions, TLSSocket, TlsOptions } from 'node:tls';
import { quoted } from '../../core/log.ts';
import type { Verified } from '../../core/peer.ts';

/** Keys by their names: bytes, or a text in hex. A channel has one. */
export type PskKeys = Readonly<Record<string, string | Uint8Array>>;

/** A key is random: who meets a client that uses one can try words at leisure. */
const bytesMin = 16;
const bytesMax = 256;
const nameBytesMax = 128;
/** Those with SHA-256, the hash that OpenSSL takes for such keys. */
const ciphers = 'TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256';

type Keys = ReadonlyMap<string, Uint8Array>;

function keyOf(name: string, given: unknown): Uint8Array {
  const isHex = typeof given === 'string' && /^([0-9a-f]{2})+$/i.test(given);
  const key = isHex ? Buffer.from(given, 'hex') : given;
  if (!(key instanceof Uint8Array) || key.byteLength < bytesMin || key.byteLength > bytesMax) {
    throw new TypeError(
      `psk: the key of ${JSON.stringify(name)} is no ${bytesMin} to ${bytesMax} random bytes, nor a text with them in hex (openssl rand -hex 32)`,
    );
  }
  return key;
}

/** Throws for what is no such table. */
function keysOf(given: PskKeys): Keys {
  const keys = new Map<string, Uint8Array>();
  for (const [name, key] of Object.entries(given)) {
    if (name === '' || Buffer.byteLength(name) > nameBytesMax || /\p{Cc}/u.test(name))
      throw new TypeError(`psk: a name has 1 to ${nameBytesMax} bytes, and no control characters`);
    keys.set(name, keyOf(name, key));
  }
  if (keys.size === 0) throw new TypeError('psk: there is no key in it');
  return keys;
}

/**
 * Throws when there are options beside the keys that have no meaning then, all but `psk` and those that are
 * not given.
 */
export function checkPskAlone(options: object): void {
  for (const [name, value] of Object.entries(options)) {
    if (name === 'psk' || value === undefined || value === '') continue;
    throw new TypeError(`psk goes without ${name}: each side proves that it has the key, and no certificate`);
  }
}

/** The table in a file, of lines `NAME:HEX` as GnuTLS and stunnel have them. */
export function readPsk(text: string): PskKeys {
  const entries = new Map<string, string>();
  for (const [at, line] of text.split('\n').entries()) {
    if (/^\s*(#.*)?$/.test(line)) continue;
    const [, name, key] = /^(.+):([0-9a-fA-F]+)\s*$/.exec(line) ?? [];
    if (name === undefined || key === undefined) throw new TypeError(`line ${at + 1} is not NAME:HEX`);
    if (entries.has(name)) throw new TypeError(`line ${at + 1} has a second key of ${JSON.stringify(name)}`);
    entries.set(name, key);
  }
  const keys = Object.fromEntries(entries);
  keysOf(keys);
  return keys;
}

/** The server's side: which key each connection has chosen, by its name. */
export class PskServer {
  readonly #keys: Keys;
  readonly #names = new WeakMap<TLSSocket, string>();

  constructor(given: PskKeys) {
    this.#keys = keysOf(given);
  }

  get options(): TlsOptions {
    return {
      ciphers,
      pskCallback: (socket, name) => {
        this.#names.set(socket, name);
        // A name that nobody has fails as a wrong key does: nobody learns which there are.
        return (this.#keys.get(name) ?? randomBytes(32)) as Buffer;
      },
    };
  }

  /** What a client that is refused has shown, for the log; '' when that is nothing. */
  shownBy(socket: TLSSocket): string {
    const name = this.#names.get(socket);
    if (name === undefined) return '';
    const found = this.#keys.has(name) ? 'it has another key than' : 'there is no psk by the name';
    return `${found} ${quoted(name)}`;
  }

  /** Who it is. Undefined: TLS has come up without a key. */
  verified(socket: TLSSocket): Verified | undefined {
    const name = this.#names.get(socket);
    return name === undefined ? undefined : verifiedBy(socket, name);
  }
}

/** The channel's side. */
export class PskClient {
  readonly #name: string;
  readonly options: ConnectionOptions;

  constructor(given: PskKeys) {
    const [[name, psk], ...more] = [...keysOf(given)] as [[string, Buffer]];
    if (more.length > 0) throw new TypeError('psk: a channel has one key; give the one to use');
    this.#name = name;
    this.options = { ciphers, pskCallback: () => ({ psk, identity: name }) };
  }

  /** Undefined: the server has not shown that it has the key, whatever else it has shown. */
  verified(socket: TLSSocket): Verified | undefined {
    return verifiedBy(socket, this.#name);
  }
}

/** OpenSSL says "reused" of connections whose key was agreed before; others are never resumed here. */
function verifiedBy(socket: TLSSocket, name: string): Verified | undefined {
  return socket.isSessionReused() ? { transport: 'tls', identity: `psk:${name}` } : undefined;
}
