/**
 * The frames of the sideband socket: what each may hold, checked field by field on arrival.
 * docs/wire/connections.md describes the handshake they make up. Used by link.ts, which carries them.
 */

import { metadataFault } from '../core/metadata-wire.ts';
import {
  backoffMaxMs,
  bindingProofBytes,
  bindingSecretBytes,
  controlTextBytes,
  fabricAddressBytes,
  fabricsMax,
  inflight,
  messageBytes,
  slotBytes,
  streams,
} from '../limits.ts';

export const magic = 'rdma-rpc';
export const version = 1;
/** Bits of `features`: what a side can do beyond the first version. */
export const feature = {
  /** Answers pings. */
  ping: 1,
  /** Answers goaways. */
  leave: 2,
  /** Accepts messages in the aligned layout. */
  aligned: 4,
  /**
   * Proves that the queue pairs of attach and attached are its own. Only where the sides have a key for it.
   */
  bound: 8,
  /** Puts messages together that come in segments. */
  segments: 16,
  /**
   * On RDMA devices: begins with few credits, and takes more as they come (WIRE §4). Offered whatever devices
   * there are: it is the other side's receives that may then be shared.
   */
  creditPool: 32,
  /** Accepts short gather entries of a large request inline, in the frame itself. */
  inlineEntries: 64,
  /** Can have a second session on the connection, in which the server makes the calls. */
  reverse: 128,
} as const;
/** What this side can do on every connection. */
export const ownFeatures =
  feature.ping |
  feature.leave |
  feature.aligned |
  feature.segments |
  feature.creditPool |
  feature.inlineEntries |
  feature.reverse;

export interface PeerLimits {
  readonly inflightMax: number;
  readonly messageMaxBytes: number;
  /** Receive slots of the sender: what it can take in one SEND. */
  readonly slotBytes: number;
  /** The same on shm. Without: as on the others. */
  readonly shmSlotBytes?: number;
  /** Open streams at once. Without: none. */
  readonly streamsMax?: number;
}
export interface FabricOffer {
  readonly name: string;
  /** host.ts */
  readonly host: string;
}

export interface FabricReason {
  readonly name: string;
  readonly reason: string;
}

export type Hello = {
  readonly type: 'hello';
  readonly magic: string;
  readonly version: number;
  /** Bits of `feature`. */
  readonly features: number;
  readonly limits: PeerLimits;
  /** In order of preference. */
  readonly fabrics: readonly FabricOffer[];
  readonly identity: string;
  /** Of the session, in its wire form: what the client shows to be let in. */
  readonly metadata?: Uint8Array;
  /** Half of the key of the binding, where the connection is private without TLS. */
  readonly secret?: Uint8Array;
  /** What this side can seal with, the fastest for it first; `seals`: and the session has to be. */
  readonly ciphers?: readonly string[];
  readonly seals?: boolean;
};
export type Welcome = {
  readonly type: 'welcome';
  readonly version: number;
  readonly features: number;
  /** `inflightMax` and `streamsMax` are the agreed ones. */
  readonly limits: PeerLimits;
  /** Those of the hello that the server can try, in order. */
  readonly fabrics: readonly string[];
  /** Why it cannot try others: for people. */
  readonly without?: readonly FabricReason[];
  readonly identity: string;
  /** As that of the hello. */
  readonly secret?: Uint8Array;
  /** One of the hello: what passes between the queue pairs is sealed with it. */
  readonly cipher?: string;
};
export type Refusal = {
  readonly type: 'refusal';
  readonly code: number;
  readonly message: string;
  /** When to come again. */
  readonly retryMs?: number;
};
/** Client: try this fabric, here is my queue pair. */
export type Attach = {
  readonly type: 'attach';
  readonly fabric: string;
  readonly address: Uint8Array;
  /** By binding.ts, where both sides have feature `bound`. */
  readonly proof?: Uint8Array;
};
/** Server: connected to it, here is mine. */
export type Attached = {
  readonly type: 'attached';
  readonly address: Uint8Array;
  readonly proof?: Uint8Array;
};
/** This fabric cannot be used; the client goes on with the next. */
export type Unreachable = { readonly type: 'unreachable'; readonly reason: string };
/** Client: connected too, the session is up. */
export type Ready = { readonly type: 'ready' };
/**
 * Server: send no new calls, those under way will be answered. The second one has `last`: so many calls of
 * this connection have been taken, and no more will be.
 */
export type GoAway = { readonly type: 'goaway'; readonly reason: string; readonly last?: number };
/**
 * Client, to a server with that feature: the first goaway has been read, so many calls have been made on this
 * connection, and no more will be.
 */
export type Leaving = { readonly type: 'leaving'; readonly calls: number };
/**
 * Client: it serves calls of the server, and here is its queue pair for the session of these. `number`: how
 * many there have been on this connection.
 */
export type Serve = {
  readonly type: 'serve';
  readonly number: number;
  readonly address: Uint8Array;
  readonly proof?: Uint8Array;
};
/** Server: connected to it, here is mine. */
export type Serving = {
  readonly type: 'serving';
  readonly number: number;
  readonly address: Uint8Array;
  readonly proof?: Uint8Array;
};
/** Server: its queue pair is connected, and it calls from now on. */
export type Served = { readonly type: 'served'; readonly number: number };
/**
 * The end of that session. Server: it makes no more calls, and none is under way; or it makes none at all,
 * with the status that says why. Client: it serves no more, at once with `now`, else after the calls that are
 * under way.
 */
export type Unserve = {
  readonly type: 'unserve';
  readonly number: number;
  readonly reason: string;
  readonly code?: number;
  readonly now?: boolean;
};
/** Either: the session ends now. */
export type Bye = { readonly type: 'bye'; readonly reason: string };
/** Either, to a side with that feature: a pong comes back at once. */
export type Ping = { readonly type: 'ping' };
export type Pong = { readonly type: 'pong' };

export type Frame =
  | Hello
  | Welcome
  | Refusal
  | Attach
  | Attached
  | Unreachable
  | Ready
  | GoAway
  | Leaving
  | Serve
  | Serving
  | Served
  | Unserve
  | Bye
  | Ping
  | Pong;
export type FrameType = Frame['type'];

/** Says why a value is refused, or nothing. */
type Check = (value: unknown) => string | undefined;

const integer =
  (min: number, max: number): Check =>
  (value) =>
    Number.isInteger(value) && (value as number) >= min && (value as number) <= max
      ? undefined
      : `not an integer from ${min} to ${max}`;
const text: Check = (value) =>
  typeof value === 'string' && Buffer.byteLength(value) <= controlTextBytes
    ? undefined
    : `not a text of at most ${controlTextBytes} bytes`;
const flag: Check = (value) => (typeof value === 'boolean' ? undefined : 'neither true nor false');
const blob: Check = (value) =>
  value instanceof Uint8Array && value.byteLength > 0 && value.byteLength <= fabricAddressBytes
    ? undefined
    : `not 1 to ${fabricAddressBytes} bytes`;
const bytes =
  (count: number): Check =>
  (value) =>
    value instanceof Uint8Array && value.byteLength === count ? undefined : `not ${count} bytes`;
const metadata: Check = (value) =>
  value instanceof Uint8Array ? metadataFault(value, 0, value.byteLength) || undefined : 'not bytes';
const exactly =
  (wanted: string): Check =>
  (value) =>
    value === wanted ? undefined : `not ${JSON.stringify(wanted)}`;
const list =
  (item: Check): Check =>
  (value) => {
    if (!Array.isArray(value) || value.length > fabricsMax) return `not a list of at most ${fabricsMax}`;
    for (const [index, entry] of value.entries()) {
      const why = item(entry);
      if (why !== undefined) return `[${index}] ${why}`;
    }
    return undefined;
  };
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined ? undefined : check(value);
const record =
  (fields: Readonly<Record<string, Check>>): Check =>
  (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'not a map';
    for (const [name, check] of Object.entries(fields)) {
      const why = check(Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined);
      if (why !== undefined) return `${name}: ${why}`;
    }
    return undefined;
  };

const spoken: Check = (value) =>
  value === version
    ? undefined
    : `${Number(value)}, but this side speaks ${version}; use the same rdma-rpc release on both sides`;
const features = integer(0, 0xffff_ffff);
const count = integer(0, Number.MAX_SAFE_INTEGER);
const limits = record({
  inflightMax: integer(inflight.min, inflight.max),
  messageMaxBytes: integer(messageBytes.min, messageBytes.max),
  slotBytes: integer(slotBytes.min, slotBytes.max),
  shmSlotBytes: optional(integer(slotBytes.min, slotBytes.max)),
  streamsMax: optional(integer(streams.min, streams.max)),
});

const checks: Readonly<Record<FrameType, Check>> = {
  hello: record({
    magic: exactly(magic),
    version: spoken,
    features,
    limits,
    fabrics: list(record({ name: text, host: text })),
    identity: text,
    metadata: optional(metadata),
    secret: optional(bytes(bindingSecretBytes)),
    ciphers: optional(list(text)),
    seals: optional(flag),
  }),
  welcome: record({
    version: spoken,
    features,
    limits,
    fabrics: list(text),
    without: optional(list(record({ name: text, reason: text }))),
    identity: text,
    secret: optional(bytes(bindingSecretBytes)),
    cipher: optional(text),
  }),
  refusal: record({ code: integer(1, 16), message: text, retryMs: optional(integer(0, backoffMaxMs.max)) }),
  attach: record({ fabric: text, address: blob, proof: optional(bytes(bindingProofBytes)) }),
  attached: record({ address: blob, proof: optional(bytes(bindingProofBytes)) }),
  unreachable: record({ reason: text }),
  ready: record({}),
  goaway: record({ reason: text, last: optional(count) }),
  leaving: record({ calls: count }),
  serve: record({ number: count, address: blob, proof: optional(bytes(bindingProofBytes)) }),
  serving: record({ number: count, address: blob, proof: optional(bytes(bindingProofBytes)) }),
  served: record({ number: count }),
  unserve: record({ number: count, reason: text, code: optional(integer(1, 16)), now: optional(flag) }),
  bye: record({ reason: text }),
  ping: record({}),
  pong: record({}),
};

/** The frame, or a text that names the field it is refused for. Fields that are not known are left alone. */
export function checkFrame(value: unknown): Frame | string {
  const kind = record({ type: text })(value);
  if (kind !== undefined) return kind;
  const type = (value as { type: string }).type;
  const check = Object.hasOwn(checks, type) ? checks[type as FrameType] : undefined;
  if (check === undefined) return `unknown type ${JSON.stringify(type.slice(0, 32))}`;
  const why = check(value);
  return why === undefined ? (value as Frame) : `${type}: ${why}`;
}

/** Cuts a text to what a frame may carry. */
export function controlText(value: string): string {
  const bytes = Buffer.from(value);
  return bytes.byteLength <= controlTextBytes
    ? value
    : new TextDecoder().decode(bytes.subarray(0, controlTextBytes - 3));
}
