/**
 * The frames of the sideband connection. Each frame is checked field by field on arrival.
 * docs/wire/connections.md describes the handshake. link.ts uses this file to send and receive frames.
 */

import { metadataFault } from '../core/metadata-wire.ts';
import {
  backoffMaxMs,
  bindingProofBytes,
  bindingSecretBytes,
  controlTextBytes,
  exposerBytes,
  fabricAddressBytes,
  fabricsMax,
  inflight,
  messageBytes,
  slotBytes,
  streams,
} from '../limits.ts';

export const magic = 'rdma-rpc';
/** The newest wire version that this side speaks, and the oldest. docs/deploy/upgrading.md has the rules. */
export const version = 1;
export const versionMin = 1;
/** Bits of `features`. Each stands for an optional ability of a side. */
export const feature = {
  /** Answers pings. */
  ping: 1,
  /** Answers goaways. */
  leave: 2,
  /** Accepts messages in the aligned layout. */
  aligned: 4,
  /**
   * Proves that the queue pairs of `attach` and `attached` belong to the sender. Only a side that has a key
   * for the proof sets this bit.
   */
  bound: 8,
  /** Accepts messages in segments. */
  segments: 16,
  /**
   * Uses a credit pool on RDMA devices (docs/wire/calls.md §4). Every side offers it, even without such
   * devices, because it allows the peer to share its receives.
   */
  creditPool: 32,
  /** Accepts short gather entries of a large request inline, in the frame itself. */
  inlineEntries: 64,
  /** The sender can have a second session on the connection, in which the server makes the calls. */
  reverse: 128,
  /** The sender knows the frames by which a client requests a queue pair for remote memory. */
  memory: 256,
} as const;
/** The features that this side has on every connection. */
export const ownFeatures =
  feature.ping |
  feature.leave |
  feature.aligned |
  feature.segments |
  feature.creditPool |
  feature.inlineEntries |
  feature.reverse |
  feature.memory;

export interface PeerLimits {
  readonly inflightMax: number;
  readonly messageMaxBytes: number;
  /** Size of the sender's receives: the longest message that the sender accepts in one SEND. */
  readonly slotBytes: number;
  /** Size of the sender's receives on the fabric shm. Default: `slotBytes`. */
  readonly shmSlotBytes?: number;
  /** Largest number of open streams. Default: 0. */
  readonly streamsMax?: number;
}
export interface FabricOffer {
  readonly name: string;
  /** The identity of the client's host (host.ts). */
  readonly host: string;
  /** Version of the fabric (fabrics.ts). Builds before 0.1.0 do not send it. */
  readonly version?: number;
}

export interface FabricReason {
  readonly name: string;
  readonly reason: string;
}

export type Hello = {
  readonly type: 'hello';
  readonly magic: string;
  /** The oldest wire version that the client speaks. */
  readonly version: number;
  /** The newest wire version that the client speaks. Default: `version`. */
  readonly versionMax?: number;
  /** The abilities of the client: bits of `feature`. */
  readonly features: number;
  readonly limits: PeerLimits;
  /** The fabrics in order of preference. */
  readonly fabrics: readonly FabricOffer[];
  readonly identity: string;
  /** Credentials of the client, in the wire form of metadata. */
  readonly metadata?: Uint8Array;
  /** The client's share of the binding key, on a connection that is private without TLS. */
  readonly secret?: Uint8Array;
  /** The ciphers of the client, the fastest first. `seals` requires that the session is sealed. */
  readonly ciphers?: readonly string[];
  readonly seals?: boolean;
};
export type Welcome = {
  readonly type: 'welcome';
  /** The wire version that both sides speak from now on. */
  readonly version: number;
  readonly features: number;
  /** `inflightMax` and `streamsMax` are the values that both sides use from now on. */
  readonly limits: PeerLimits;
  /** The fabrics of the hello that the server can try, in order. */
  readonly fabrics: readonly string[];
  /** The reasons why the server cannot try the other fabrics, for error texts. */
  readonly without?: readonly FabricReason[];
  readonly identity: string;
  /** The server's share of the binding key, as in the hello. */
  readonly secret?: Uint8Array;
  /** The cipher that the server chose from the hello, if the session is sealed. */
  readonly cipher?: string;
  /** GIDs (16 bytes) of the server's RDMA devices, if it accepts several attaches for them (rails.ts). */
  readonly gids?: readonly Uint8Array[];
};
export type Refusal = {
  readonly type: 'refusal';
  readonly code: number;
  readonly message: string;
  /** The number of milliseconds after which the client may retry. */
  readonly retryMs?: number;
};
/** The client asks the server to try this fabric. Contains the address of the client's queue pair. */
export type Attach = {
  readonly type: 'attach';
  readonly fabric: string;
  readonly address: Uint8Array;
  /** The proof that binding.ts makes, when both sides have the feature `bound`. */
  readonly proof?: Uint8Array;
};
/** The server has connected to the client's queue pair. Contains the address of the server's queue pair. */
export type Attached = {
  readonly type: 'attached';
  readonly address: Uint8Array;
  readonly proof?: Uint8Array;
};
/** The sender cannot use this fabric. The client then tries the next fabric. */
export type Unreachable = { readonly type: 'unreachable'; readonly reason: string };
/** The client's queue pair is connected too, so the session is up. */
export type Ready = { readonly type: 'ready' };
/**
 * The server asks the client to send no new calls, and will answer the calls in flight. The second goaway of
 * a connection has `last`, the number of calls of this connection that the server accepts.
 */
export type GoAway = { readonly type: 'goaway'; readonly reason: string; readonly last?: number };
/**
 * The client has read the first goaway. A client sends this frame only to a server with the feature `leave`.
 * `calls` is the final number of calls that the client has made on this connection.
 */
export type Leaving = { readonly type: 'leaving'; readonly calls: number };
/**
 * The client offers to serve calls of the server. Contains the address of the client's queue pair for the
 * second session. `number` counts the second sessions of this connection.
 */
export type Serve = {
  readonly type: 'serve';
  readonly number: number;
  readonly address: Uint8Array;
  readonly proof?: Uint8Array;
};
/** The server is connecting to that queue pair. Contains the address of the server's queue pair. */
export type Serving = {
  readonly type: 'serving';
  readonly number: number;
  readonly address: Uint8Array;
  readonly proof?: Uint8Array;
};
/** The server's queue pair is connected, and the server may make calls from now on. */
export type Served = { readonly type: 'served'; readonly number: number };
/**
 * The end of the second session. The server sends it when no calls are left, or with a status to refuse the
 * session. The client sends it to stop serving: at once with `now`, otherwise after its calls.
 */
export type Unserve = {
  readonly type: 'unserve';
  readonly number: number;
  readonly reason: string;
  readonly code?: number;
  readonly now?: boolean;
};
/** The client asks for remote memory. Contains the address of its queue pair, and its name in handles. */
export type Memory = {
  readonly type: 'memory';
  readonly number: number;
  readonly address: Uint8Array;
  readonly proof?: Uint8Array;
  readonly exposer: Uint8Array;
};
/** The server is connecting to that queue pair. */
export type MemoryAccepted = Omit<Memory, 'type'> & { readonly type: 'memoryAccepted' };
/** Either side ends the queue pair for remote memory or, with a status, refuses it. */
export type MemoryEnd = {
  readonly type: 'memoryEnd';
  readonly number: number;
  readonly reason: string;
  readonly code?: number;
};
/** Either side sends it when the session ends now. */
export type Bye = { readonly type: 'bye'; readonly reason: string };
/** Either side may send a ping to a peer with the feature `ping`. The peer answers at once with a pong. */
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
  | Memory
  | MemoryAccepted
  | MemoryEnd
  | Bye
  | Ping
  | Pong;
export type FrameType = Frame['type'];

/** Returns the reason why a value is refused, or undefined. */
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
    : `must be a string of at most ${controlTextBytes} bytes`;
const flag: Check = (value) => (typeof value === 'boolean' ? undefined : 'must be true or false');
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

const anyVersion = integer(1, 0xffff);
const features = integer(0, 0xffff_ffff);
const count = integer(0, Number.MAX_SAFE_INTEGER);
const limits = record({
  inflightMax: integer(inflight.min, inflight.max),
  messageMaxBytes: integer(messageBytes.min, messageBytes.max),
  slotBytes: integer(slotBytes.min, slotBytes.max),
  shmSlotBytes: optional(integer(slotBytes.min, slotBytes.max)),
  streamsMax: optional(integer(streams.min, streams.max)),
});

const proof = optional(bytes(bindingProofBytes));
const memory = record({ number: count, address: blob, proof, exposer: bytes(exposerBytes) });

const checks: Readonly<Record<FrameType, Check>> = {
  hello: record({
    magic: exactly(magic),
    version: anyVersion,
    versionMax: optional(anyVersion),
    features,
    limits,
    fabrics: list(record({ name: text, host: text, version: optional(anyVersion) })),
    identity: text,
    metadata: optional(metadata),
    secret: optional(bytes(bindingSecretBytes)),
    ciphers: optional(list(text)),
    seals: optional(flag),
  }),
  welcome: record({
    version: anyVersion,
    features,
    limits,
    fabrics: list(text),
    without: optional(list(record({ name: text, reason: text }))),
    identity: text,
    secret: optional(bytes(bindingSecretBytes)),
    cipher: optional(text),
    gids: optional(list(bytes(16))),
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
  memory,
  memoryAccepted: memory,
  memoryEnd: record({ number: count, reason: text, code: optional(integer(1, 16)) }),
  bye: record({ reason: text }),
  ping: record({}),
  pong: record({}),
};

/** Fields of a hello or welcome that have the same meaning in every wire version. */
const versioned: Readonly<Partial<Record<string, Check>>> = {
  hello: record({ magic: exactly(magic), version: anyVersion, versionMax: optional(anyVersion) }),
  welcome: record({ version: anyVersion }),
};
const range = (min: number, max: number): string =>
  max > min ? `wire versions ${min} to ${max}` : `wire version ${min}`;

/** Returns the newest version that both sides speak, or undefined when they have no version in common. */
export function commonVersion(peer: Pick<Hello, 'version' | 'versionMax'>): number | undefined {
  const common = Math.min(version, peer.versionMax ?? peer.version);
  return common >= Math.max(versionMin, peer.version) ? common : undefined;
}

/**
 * Returns an error text for a hello or welcome whose sender supports no wire version of this side, or
 * undefined for any other value. Call it before checkFrame(), because other versions may have other fields.
 */
export function otherVersion(value: unknown): string | undefined {
  const { type } = Object(value) as { type?: unknown };
  const check = typeof type === 'string' && Object.hasOwn(versioned, type) ? versioned[type] : undefined;
  if (check === undefined || check(value) !== undefined) return undefined;
  const peer = value as Pick<Hello, 'version' | 'versionMax'>;
  if (commonVersion(peer) !== undefined) return undefined;
  const side = type === 'hello' ? 'server' : 'client';
  return `a ${type} of ${range(peer.version, peer.versionMax ?? peer.version)}, but the ${side} speaks ${range(versionMin, version)}; use the same rdma-rpc release on both sides`;
}

/** Returns the checked frame, or a text that names the invalid field. Unknown fields are ignored. */
export function checkFrame(value: unknown): Frame | string {
  const kind = record({ type: text })(value);
  if (kind !== undefined) return kind;
  const type = (value as { type: string }).type;
  const check = Object.hasOwn(checks, type) ? checks[type as FrameType] : undefined;
  if (check === undefined) return `unknown type ${JSON.stringify(type.slice(0, 32))}`;
  const why = check(value);
  return why === undefined ? (value as Frame) : `${type}: ${why}`;
}

/** Cuts a text to the length that a frame may carry. */
export function controlText(value: string): string {
  const bytes = Buffer.from(value);
  return bytes.byteLength <= controlTextBytes
    ? value
    : new TextDecoder().decode(bytes.subarray(0, controlTextBytes - 3));
}

/**
 * Returns the frame that tells the peer why the native session of `side` has ended. Only `side` knows that
 * cause: the status of a failed work request, or a limit.
 */
export function byeOfSession(side: 'client' | 'server', cause: string): Bye {
  return { type: 'bye', reason: controlText(`the ${side}'s session failed: ${cause}`) };
}
