/**
 * Pre-shared keys instead of certificates: the external PSKs of TLS 1.3 (RFC 8446). They are combined with an
 * ephemeral key exchange, so that a key that becomes known later does not reveal earlier traffic. Both sides
 * of TLS use this file. No error text contains a key.
 */

import { randomBytes } from 'node:crypto';
import type { ConnectionOptions, TLSSocket, TlsOptions } from 'node:tls';
import { isUint8Array } from 'node:util/types';
import { quoted } from '../../core/log.ts';
import type { Verified } from '../../core/peer.ts';
import { noPskUsed } from './mismatch.ts';

/** Keys by their names, as bytes or as hex text. A channel has exactly one key. */
export type PskKeys = Readonly<Record<string, string | Uint8Array>>;

/**
 * The minimum length of a key in bytes. Keys must be random, because an attacker to whom a client has
 * connected can test guesses offline.
 */
const bytesMin = 16;
const bytesMax = 256;
const nameBytesMax = 128;
/** The cipher suites with SHA-256, the hash that OpenSSL uses for such keys. */
const ciphers = 'TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256';

type Keys = ReadonlyMap<string, Uint8Array>;

function keyOf(name: string, given: unknown): Uint8Array {
  const isHex = typeof given === 'string' && /^([0-9a-f]{2})+$/i.test(given);
  const key = isHex ? Buffer.from(given, 'hex') : given;
  if (!isUint8Array(key) || key.byteLength < bytesMin || key.byteLength > bytesMax) {
    throw new TypeError(
      `psk: the key of ${JSON.stringify(name)} must be ${bytesMin} to ${bytesMax} random bytes, or a string with them in hex (openssl rand -hex 32)`,
    );
  }
  return key;
}

/** Returns the keys as bytes. Throws for an invalid table. */
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

/** Throws for options that have no meaning together with `psk`. */
export function checkPskAlone(options: object): void {
  for (const [name, value] of Object.entries(options)) {
    if (name === 'psk' || value === undefined || value === '') continue;
    throw new TypeError(
      `psk cannot be combined with ${name}: the sides prove that they have the key, and use no certificates`,
    );
  }
}

/** Parses a file of keys with lines `NAME:HEX`, the format of GnuTLS and stunnel. */
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

/** The server's side. It records the name of the key that each connection has used. */
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
        // An unknown name fails in the same way as a wrong key, so that peers cannot find out which names
        // exist.
        return (this.#keys.get(name) ?? randomBytes(32)) as Buffer;
      },
    };
  }

  /** Returns a text for the log with the name of the key that a refused client has used, if any. */
  shownBy(socket: TLSSocket): string {
    const name = this.#names.get(socket);
    if (name === undefined) return noPskUsed;
    const found = this.#keys.has(name) ? 'it has another key than' : 'there is no psk by the name';
    return `${found} ${quoted(name)}`;
  }

  /** Returns the identity of the client, or undefined when no key was used. */
  verified(socket: TLSSocket): Verified | undefined {
    const name = this.#names.get(socket);
    return name === undefined ? undefined : verifiedBy(socket, name);
  }
}

/** The client's side. */
export class PskClient {
  readonly #name: string;
  readonly options: ConnectionOptions;

  constructor(given: PskKeys) {
    const [[name, psk], ...more] = [...keysOf(given)] as [[string, Buffer]];
    if (more.length > 0) throw new TypeError('psk: a channel has one key; give the one to use');
    this.#name = name;
    this.options = { ciphers, pskCallback: () => ({ psk, identity: name }) };
  }

  /**
   * Returns the identity of the server, or undefined when the server has not proved that it has the key. A
   * certificate that the server may have shown does not count.
   */
  verified(socket: TLSSocket): Verified | undefined {
    return verifiedBy(socket, this.#name);
  }
}

/**
 * Returns the identity for a connection with a PSK. OpenSSL reports such connections as "reused". No other
 * connections are reported this way, because sessions are not resumed here.
 */
function verifiedBy(socket: TLSSocket, name: string): Verified | undefined {
  return socket.isSessionReused() ? { transport: 'tls', identity: `psk:${name}` } : undefined;
}
