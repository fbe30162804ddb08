/**
 * Channel binding: proves that a queue pair belongs to the peer of its handshake. The proofs use a key that
 * only the two ends of the sideband connection have. The proofs cover the role, the fabric, both addresses
 * (which contain numbers and tokens of the queue pairs) and every byte of hello and welcome. Both handshakes
 * use this file, which sends nothing itself.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import { bindingSecretBytes } from '../../limits.ts';
import { feature, type Hello, type Welcome } from '../frames.ts';
import { verifiedOf } from '../peer-identity.ts';

const exporterLabel = 'EXPORTER-rdma-rpc';
const hash = 'sha256';
/** Length of keys in bytes, which is the length of the hash. */
const keyBytes = 32;
/** The number of the HKDF block. */
const firstBlock = Uint8Array.of(1);
/** The label of a connection's key in its derivation. */
const bindingInfo = Buffer.from('rdma-rpc binding');
/** Length in bytes of the words by which the two sides identify themselves in connection setup messages. */
const firstWordBytes = 16;

/**
 * A source of the key material that only the two ends of a TLS connection have. A TLS socket exports it; a
 * stream from another thread has it as a property.
 */
interface Exporting {
  readonly tlsSecret?: Uint8Array | undefined;
  exportKeyingMaterial?(bytes: number, label: string): Uint8Array;
}

/**
 * Returns the exported key of a TLS connection. Returns undefined without TLS, after the connection was lost,
 * and in JS runtimes that cannot export TLS keys.
 */
export function tlsSecretOf(duplex: Duplex): Uint8Array | undefined {
  const { tlsSecret } = duplex as Exporting;
  if (tlsSecret !== undefined) return tlsSecret;
  try {
    return (duplex as Exporting).exportKeyingMaterial?.(keyBytes, exporterLabel);
  } catch {
    return undefined;
  }
}

/** One side's part of the binding. */
export interface BindingOffer {
  /** True for a TLS connection. */
  readonly tls: boolean;
  /** Feature bits for hello or welcome. */
  readonly features: number;
  /**
   * This side's share of the key, which is sent in the same frame. It is set only on connections that are
   * private without TLS.
   */
  readonly secret?: Uint8Array;
  /**
   * The exported key of TLS, which is never sent. It is read early, because it is not available after the
   * connection was lost.
   */
  readonly exported?: Uint8Array;
}

/**
 * Returns this side's part of the binding on a connection. It contains no key on a connection that others can
 * read.
 */
export function bindingOffer(duplex: Duplex): BindingOffer {
  const { transport } = verifiedOf(duplex);
  const tls = transport === 'tls';
  if (transport === undefined) return { tls, features: 0 };
  if (!tls) return { tls, features: feature.bound, secret: randomBytes(bindingSecretBytes) };
  const exported = tlsSecretOf(duplex);
  return exported === undefined ? { tls, features: 0 } : { tls, features: feature.bound, exported };
}

function refuse(text: string): never {
  throw new RpcError(Status.UNAUTHENTICATED, text, { processed: 'no' });
}

/**
 * Concatenates the parts and puts its length in front of each part, so that different lists never have the
 * same bytes.
 */
function joined(parts: readonly (string | Uint8Array)[]): Buffer {
  const elements = parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part));
  const bytes = Buffer.allocUnsafe(elements.reduce((sum, { byteLength }) => sum + 4 + byteLength, 0));
  let at = 0;
  for (const element of elements) {
    at = bytes.writeUInt32LE(element.byteLength, at);
    bytes.set(element, at);
    at += element.byteLength;
  }
  return bytes;
}

/**
 * Computes HKDF (RFC 5869) for keys of the length of the hash. It is twice as fast as hkdfSync(), which
 * creates a job and key objects.
 */
export function hkdf(secret: Uint8Array, salt: Uint8Array | '', info: Uint8Array): Buffer {
  const extracted = createHmac(hash, salt).update(secret).digest();
  return createHmac(hash, extracted).update(info).update(firstBlock).digest();
}

/** The keys of one attempt to connect queue pairs. Each attempt has different keys. */
export class BoundAttempt {
  readonly #key: Uint8Array;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  #mac(...parts: (string | Uint8Array)[]): Buffer {
    return createHmac(hash, this.#key).update(joined(parts)).digest();
  }

  /** Returns the proof of an attach frame. */
  attach(client: Uint8Array): Buffer {
    return this.#mac('attach', client);
  }

  /** Returns the proof of an attached frame, which answers the attach frame. */
  attached(client: Uint8Array, server: Uint8Array): Buffer {
    return this.#mac('attached', client, server);
  }

  /**
   * Returns the keys with which the session encrypts the bytes that it sends and decrypts the bytes that it
   * receives, in the order that native code expects.
   */
  sealKeys(role: 'client' | 'server'): Uint8Array {
    const other = role === 'client' ? 'server' : 'client';
    const kinds = [`frames of ${role}`, `frames of ${other}`, `bulk of ${role}`, `bulk of ${other}`];
    return Buffer.concat(kinds.map((kind) => hkdf(this.#key, '', joined(['seal', kind]))));
  }

  /**
   * Returns the words by which the two sides identify themselves during connection setup: first the word of
   * this side, then the word of the peer.
   */
  setupWords(role: 'client' | 'server', client: Uint8Array, server: Uint8Array): Buffer {
    const words = [role, role === 'client' ? 'server' : 'client'].map((of) =>
      this.#mac(`first of ${of}`, client, server).subarray(0, firstWordBytes),
    );
    return Buffer.concat(words);
  }
}

/** Throws when a frame's proof is wrong. */
export function checkProof(found: Uint8Array | undefined, wanted: Buffer, what: string): void {
  if (found?.byteLength === wanted.byteLength && timingSafeEqual(found, wanted)) return;
  refuse(
    `${what} is not proved to come from the peer of this handshake; is something between the two sides?`,
  );
}

/**
 * Chooses a cipher from both lists, which are ordered by speed. It chooses the first cipher when it is the
 * same in both lists, otherwise the cipher that needs no special CPU instructions.
 */
export function commonCipher(ours: readonly string[], theirs: readonly string[]): string | undefined {
  const [first] = ours;
  if (first === theirs[0]) return first;
  const both = ours.filter((cipher) => theirs.includes(cipher));
  return both.find((cipher) => cipher.startsWith('chacha20')) ?? both[0];
}

export class Binding {
  readonly #key: Uint8Array;

  /** `opening` contains the bytes of hello and welcome exactly as they were sent. */
  constructor(secret: Uint8Array, opening: readonly Uint8Array[]) {
    const transcript = createHash(hash).update(joined(opening)).digest();
    this.#key = hkdf(secret, transcript, bindingInfo);
  }

  /** Returns the keys of an attempt. `number` counts the attach frames from 0. */
  attempt(number: number, fabric: string): BoundAttempt {
    return this.#attempt('attempt', number, fabric);
  }

  /**
   * Returns the keys of a session in which the server makes the calls. `number` counts the serve frames from
   * 0.
   */
  reverse(number: number, fabric: string): BoundAttempt {
    return this.#attempt('reverse', number, fabric);
  }

  /** Returns the keys of a queue pair for remote memory. `number` counts the memory frames from 0. */
  memory(number: number, fabric: string): BoundAttempt {
    return this.#attempt('memory', number, fabric);
  }

  #attempt(kind: string, number: number, fabric: string): BoundAttempt {
    return new BoundAttempt(hkdf(this.#key, '', joined([kind, String(number), fabric])));
  }
}

type Opening = Pick<Hello | Welcome, 'features' | 'secret'>;

/**
 * Returns whether queue pairs will be bound. Throws over TLS when one side lacks the feature `bound`. Every
 * implementation with TLS has this feature, so an attacker has removed the bit on the way.
 */
export function bothBind({ tls }: BindingOffer, one: Opening, other: Opening): boolean {
  const both = (one.features & other.features & feature.bound) !== 0;
  if (both) return tls || (one.secret !== undefined && other.secret !== undefined);
  if (!tls) return false;
  return refuse(
    'over TLS both sides must prove that they own their queue pairs, but one of them does not; use the same rdma-rpc release on both',
  );
}

/**
 * Returns the secret that only the two ends of the connection have. Throws when the secret is missing,
 * because a key that others could derive would protect nothing.
 */
function keyOf({ tls, exported }: BindingOffer, hello: Opening, welcome: Opening): Uint8Array {
  if (tls)
    return (
      exported ??
      refuse('the key of this TLS connection is missing: it was lost, or this JS runtime does not provide it')
    );
  const { secret: clients } = hello;
  const { secret: servers } = welcome;
  if (clients === undefined || servers === undefined) refuse('the key of this connection is incomplete');
  return joined([clients, servers]);
}

/**
 * Returns the binding of a connection after hello and welcome (`opening`). `offer` is this side's part.
 * Returns undefined when the two sides have no key. Throws as bothBind() does.
 */
export function bindingOf(
  offer: BindingOffer,
  hello: Opening,
  welcome: Opening,
  opening: readonly Uint8Array[],
): Binding | undefined {
  if (!bothBind(offer, hello, welcome)) return undefined;
  return new Binding(keyOf(offer, hello, welcome), opening);
}
