/** The options of createServer, with their meanings, defaults and ranges. */
import { type CheckedFabricOptions, type FabricOptions, fabricRules } from '../control/fabric-options.ts';
import { type CheckedSecurity, type SecurityOptions, securityRules } from '../control/security-level.ts';
import { type SocketFile, socketRules } from '../control/socket/unix-path.ts';
import type { ServerTls, TlsSource } from '../control/tls/tls-options.ts';
import type { Log } from '../core/log.ts';
import { type OptionRules, ownedBy } from '../core/options.ts';
import type { OnHandlerError } from '../core/warnings.ts';
import * as limits from '../limits.ts';
import type { AllowedPeers, Authenticate, CheckedAllowedPeers } from './allowed.ts';
import type { AuthorizeFunction, AuthorizeTable, DeniedCall } from './authorize.ts';
import type { OnSession } from './connection-attempt.ts';
import type { Quotas, QuotasOf } from './quotas.ts';

export interface ServerOptions extends FabricOptions {
  /** Limit of calls in flight per session; the client may request fewer. Default 256. */
  inflightMax?: number;
  /** Limit of open streams per session; the client may request fewer. Default 64, 0 to allow none. */
  streamsMax?: number;
  /** Largest accepted request, in bytes. Default 64 MiB, at most 4 GiB - 1. */
  messageMaxBytes?: number;
  /**
   * How long the memory of large `bytes` values of a request stays valid. `call` (default): until the call
   * has been answered and its handler has finished; after that these values are empty, unless the handler has
   * called `keep(request)`. `lease`: until `leaseOf(request)` is released or the values are collected.
   * Messages of streams always behave as with `lease`.
   */
  requestMemory?: 'lease' | 'call';
  /** Limit of sessions. Default 1024. */
  sessionsMax?: number;
  /**
   * Limit of sessions of one network address. Default 64. Connections that are not admitted yet are counted
   * separately with the same limit; beyond it the oldest is closed. Unix sockets have no address and no such
   * limit.
   */
  sessionsPerPeerMax?: number;
  /**
   * Limit of running asynchronous handlers of all sessions, including streams. Default 16384; further
   * requests are refused with RESOURCE_EXHAUSTED before they are decoded.
   */
  handlersMax?: number;
  /**
   * Limit, for each of three groups, of connections in their handshake: those that have sent nothing yet,
   * those that have, and those about which `authenticate` is deciding. Default 128. Beyond the limit of the
   * first or the last group, its oldest connection is closed.
   */
  handshakesMax?: number;
  /**
   * Time limit of a handshake. Default 5000. A client that waits for this side, because its thread was busy,
   * is not refused then.
   */
  handshakeTimeoutMs?: number;
  /**
   * Time limit of calls whose client sets none. When it passes, the server answers DEADLINE_EXCEEDED.
   * Default: `timeoutMaxMs`, otherwise none.
   */
  defaultTimeoutMs?: number;
  /**
   * Longest time that a call may take, whatever its client requests; when it passes, the server answers
   * DEADLINE_EXCEEDED. Default: none.
   */
  timeoutMaxMs?: number;
  /**
   * Age at which a connection is drained, plus or minus 10 %; the client opens a new one for its next call.
   * Default: none.
   */
  connectionAgeMaxMs?: number;
  /** Time without calls after which a connection is drained. Default: none. */
  connectionIdleMaxMs?: number;
  /** Time that calls in flight have to finish when age or idleness ends their connection. Default 60000. */
  connectionAgeGraceMs?: number;
  /** Called for errors of handlers that are not RpcErrors. Callers get only INTERNAL and a fixed text. */
  onHandlerError?: OnHandlerError;
  /** The peers that may have a session, by verified identity. Default: everybody who can connect. */
  allow?: AllowedPeers;
  /**
   * Called once for each connection, before it gets a session. Returns the identity of the peer, or undefined
   * to keep the verified one; throws to refuse the peer. `metadata` are the credentials of the channel.
   */
  authenticate?: Authenticate;
  /**
   * Which identities may call which methods; methods that are not named may be called by nobody. Or a
   * function that decides for each call. Default: every client with a session may call everything.
   */
  authorize?: AuthorizeFunction | AuthorizeTable;
  /**
   * Called for each call that `authorize` has denied. An error that it throws becomes a process warning. The
   * `log` gets a line, too.
   */
  onDenied?: (call: DeniedCall) => void;
  /**
   * Limits of each identity, the same for all or by a function. They apply to each server separately, and so
   * to each worker of a group. Default: only the limits of sessions.
   */
  quotas?: Quotas | QuotasOf;
  /**
   * Called once for each connection, with its session or with the reason why it has none. An error that it
   * throws becomes a process warning.
   */
  onSession?: OnSession;
  /**
   * TLS 1.3 on `host:port` addresses, from the first byte; with `ca`, mutual TLS. Unix sockets do not use
   * TLS: the kernel identifies the peer.
   */
  tls?: TlsSource<ServerTls>;
  /** The required security level of sessions. */
  security?: SecurityOptions;
  /**
   * Permissions, owner and group of the file of a unix socket. Default: the umask and the ids of this
   * process.
   */
  socket?: SocketFile;
  /** Name of this process for clients. Default: its process id. */
  identity?: string;
  /**
   * Gets one line per connection: the fabric chosen, and why no other, or why the handshake failed. At most
   * 10 lines a second for each peer address. Default: a process warning when a fabric was skipped, and one
   * for refused clients (without `onSession`): the first is shown, further ones are summed up once a minute.
   */
  log?: Log;
}

const allowRules: OptionRules = {
  uid: { kind: 'integers', range: limits.userId },
  gid: { kind: 'integers', range: limits.userId },
  identity: { kind: 'texts', maxBytes: limits.controlTextBytes },
};

export const serverRules: OptionRules = ownedBy('createServer', {
  inflightMax: { kind: 'integer', range: limits.inflight },
  streamsMax: { kind: 'integer', range: limits.streams },
  messageMaxBytes: { kind: 'integer', range: limits.messageBytes },
  requestMemory: { kind: 'choice', values: ['lease', 'call'], default: 'call' },
  sessionsMax: { kind: 'integer', range: limits.sessions },
  sessionsPerPeerMax: { kind: 'integer', range: limits.sessionsPerPeer },
  handlersMax: { kind: 'integer', range: limits.handlers },
  handshakesMax: { kind: 'integer', range: limits.handshakes },
  handshakeTimeoutMs: { kind: 'integer', range: limits.handshakeTimeoutMs },
  defaultTimeoutMs: { kind: 'integer', range: limits.serverTimeoutMs },
  timeoutMaxMs: { kind: 'integer', range: limits.serverTimeoutMs },
  connectionAgeMaxMs: { kind: 'integer', range: limits.connectionAgeMaxMs },
  connectionIdleMaxMs: { kind: 'integer', range: limits.connectionIdleMaxMs },
  connectionAgeGraceMs: { kind: 'integer', range: limits.connectionAgeGraceMs },
  onHandlerError: { kind: 'function' },
  allow: { kind: 'options', rules: allowRules },
  authenticate: { kind: 'function' },
  authorize: { kind: 'source' },
  onDenied: { kind: 'function' },
  quotas: { kind: 'source' },
  onSession: { kind: 'function' },
  tls: { kind: 'source' },
  security: { kind: 'options', rules: securityRules },
  socket: { kind: 'options', rules: socketRules },
  identity: { kind: 'text', default: `pid ${process.pid}`, maxBytes: limits.controlTextBytes },
  log: { kind: 'function' },
  ...fabricRules,
});

type Optional =
  | 'authenticate'
  | 'authorize'
  | 'onDenied'
  | 'onHandlerError'
  | 'onSession'
  | 'quotas'
  | 'log'
  | 'defaultTimeoutMs'
  | 'timeoutMaxMs'
  | 'connectionAgeMaxMs'
  | 'connectionIdleMaxMs';

/** Checked options with defaults. */
export type ResolvedServerOptions = Required<
  Omit<ServerOptions, Optional | 'allow' | 'tls' | 'security' | keyof FabricOptions>
> & {
  readonly allow: CheckedAllowedPeers;
  readonly security: CheckedSecurity;
} & Pick<ServerOptions, Optional> &
  CheckedFabricOptions;
