/**
 * What ties a queue pair to the peer of its handshake: proofs under a key that only the two sides of the
 * sideband connection have. They cover role, fabric, both addresses (which hold numbers and tokens of the
 * queue pairs) and every byte of hello and welcome. Used by both handshakes; nothing here is sent by itself.
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
/** Of keys, as many as the hash has. */
const keyBytes = 32;
/** The number of a block that is made by HKDF. */
const firstBlock = Uint8Array.of(1);
/** As the key of a connection is named in what it is made of. */
const bindingInfo = Buffer.from('rdma-rpc binding');
/** Of what the queue pairs say to each other first. */
const firstWordBytes = 16;

/**
 * What nobody but the two ends of a TLS connection has, as sockets of TLS give it. A stream from another
 * thread brings it along.
 */
interface Exporting {
  readonly tlsSecret?: Uint8Array | undefined;
  exportKeyingMaterial?(bytes: number, label: string): Uint8Array;
}

/** Undefined without TLS, when the connection is lost, and where the JS runtime has no keys of TLS. */
export function tlsSecretOf(duplex: Duplex): Uint8Array | undefined {
  const { tlsSecret } = duplex as Exporting;
  if (tlsSecret !== undefined) return tlsSecret;
  try {
    return (duplex as Exporting).exportKeyingMaterial?.(keyBytes, exporterLabel);
  } catch {
    return undefined;
  }
}

/** What one side brings to a binding. */
export interface BindingOffer {
  /** The connection is one of TLS. */
  readonly tls: boolean;
  /** Bits for hello or welcome. */
  readonly features: number;
  /** For the same frame: half of the key, where the connection is private without TLS. */
  readonly secret?: Uint8Array;
  /** The key of TLS, which is no longer there when the connection is lost. Never sent. */
  readonly exported?: Uint8Array;
}

/** What this side can offer on a connection; nothing where others can read it. */
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

/** Each part with its length, so that no two lists have the same bytes. */
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
 * RFC 5869 for as many bytes as the hash has: twice as fast as hkdfSync(), which makes a job and key objects
 * for it.
 */
export function hkdf(secret: Uint8Array, salt: Uint8Array | '', info: Uint8Array): Buffer {
  const extracted = createHmac(hash, salt).update(secret).digest();
  return createHmac(hash, extracted).update(info).update(firstBlock).digest();
}

/** One attempt to connect queue pairs. No two have a key in common. */
export class BoundAttempt {
  readonly #key: Uint8Array;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  #mac(...parts: (string | Uint8Array)[]): Buffer {
    return createHmac(hash, this.#key).update(joined(parts)).digest();
  }

  /** Of an attach frame. */
  attach(client: Uint8Array): Buffer {
    return this.#mac('attach', client);
  }

  /** Of its answer. */
  attached(client: Uint8Array, server: Uint8Array): Buffer {
    return this.#mac('attached', client, server);
  }

  /** Of what the session sends and receives, as native code takes them. */
  sealKeys(role: 'client' | 'server'): Uint8Array {
    const other = role === 'client' ? 'server' : 'client';
    const kinds = [`frames of ${role}`, `frames of ${other}`, `bulk of ${role}`, `bulk of ${other}`];
    return Buffer.concat(kinds.map((kind) => hkdf(this.#key, '', joined(['seal', kind]))));
  }

  /** By what each side is known in the first message between the queue pairs: this one, and the other. */
  firstWords(role: 'client' | 'server', client: Uint8Array, server: Uint8Array): Buffer {
    const words = [role, role === 'client' ? 'server' : 'client'].map((of) =>
      this.#mac(`first of ${of}`, client, server).subarray(0, firstWordBytes),
    );
    return Buffer.concat(words);
  }
}

/** Throws when a frame's proof is not this one. */
export function checkProof(found: Uint8Array | undefined, wanted: Buffer, what: string): void {
  if (found?.byteLength === wanted.byteLength && timingSafeEqual(found, wanted)) return;
  refuse(
    `${what} is not proved to come from the peer of this handshake; is something between the two sides?`,
  );
}

/**
 * The cipher of two lists, each the fastest first: what is fast on both sides, else the one that needs no
 * instructions of its own.
 */
export function commonCipher(ours: readonly string[], theirs: readonly string[]): string | undefined {
  const [first] = ours;
  if (first === theirs[0]) return first;
  const both = ours.filter((cipher) => theirs.includes(cipher));
  return both.find((cipher) => cipher.startsWith('chacha20')) ?? both[0];
}

export class Binding {
  readonly #key: Uint8Array;

  /** `opening`: hello and welcome, as they have passed. */
  constructor(secret: Uint8Array, opening: readonly Uint8Array[]) {
    const transcript = createHash(hash).update(joined(opening)).digest();
    this.#key = hkdf(secret, transcript, bindingInfo);
  }

  /** `number`: of the attach frame, from 0. */
  attempt(number: number, fabric: string): BoundAttempt {
    return this.#attempt('attempt', number, fabric);
  }

  /** The same for a session in which the server makes the calls; `number`: of the serve frame, from 0. */
  reverse(number: number, fabric: string): BoundAttempt {
    return this.#attempt('reverse', number, fabric);
  }

  #attempt(kind: string, number: number, fabric: string): BoundAttempt {
    return new BoundAttempt(hkdf(this.#key, '', joined([kind, String(number), fabric])));
  }
}

type Opening = Pick<Hello | Welcome, 'features' | 'secret'>;

/**
 * Whether queue pairs will be bound. Throws over TLS when one side does without: everybody who speaks TLS
 * here can, so somebody has taken it out.
 */
export function bothBind({ tls }: BindingOffer, one: Opening, other: Opening): boolean {
  const both = (one.features & other.features & feature.bound) !== 0;
  if (both) return tls || (one.secret !== undefined && other.secret !== undefined);
  if (!tls) return false;
  return refuse(
    'over TLS both sides prove that their queue pairs are their own, and one of them does not; use the same rdma-rpc release on both',
  );
}

/**
 * What only the two ends of the connection have. Throws when it is missing: a key that anybody could make
 * would bind nothing.
 */
function keyOf({ tls, exported }: BindingOffer, hello: Opening, welcome: Opening): Uint8Array {
  if (tls)
    return (
      exported ??
      refuse('the key of this TLS connection is not there: it was lost, or this JS runtime has none')
    );
  const { secret: clients } = hello;
  const { secret: servers } = welcome;
  if (clients === undefined || servers === undefined) refuse('half of the key of this connection is missing');
  return joined([clients, servers]);
}

/**
 * Of a connection whose hello and welcome, `opening`, have passed; `offer` is that of this side. Undefined
 * where the two sides have no key. Throws as bothBind() does.
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
