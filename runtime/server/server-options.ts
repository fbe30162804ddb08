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
  /** Limit of calls in flight per session. The client may request a lower limit. Default 256. */
  inflightMax?: number;
  /**
   * Limit of open streams per session. The client may request a lower limit. Default 64; with 0, streams are
   * not allowed.
   */
  streamsMax?: number;
  /** Largest accepted request, in bytes. Default 64 MiB, at most 4 GiB - 1. */
  messageMaxBytes?: number;
  /**
   * Time for which the memory of large `bytes` values of a request stays valid. With `call` (default), it is
   * valid until the call has been answered and its handler has finished. After that, the values are empty,
   * unless the handler has called `keep(request)`. With `lease`, it is valid until `leaseOf(request)` is
   * released or the values are garbage-collected. Messages of streams always behave as with `lease`.
   */
  requestMemory?: 'lease' | 'call';
  /** Limit of sessions. Default 1024. */
  sessionsMax?: number;
  /**
   * Limit of sessions of one network address. Default 64. Connections that are not admitted yet are counted
   * separately, with the same limit. When an address has more of them, its oldest connection is closed. The
   * limit does not apply to unix sockets, which have no address.
   */
  sessionsPerPeerMax?: number;
  /**
   * Limit of running asynchronous handlers of all sessions, including streams. Further requests are refused
   * with RESOURCE_EXHAUSTED before they are decoded. Default 16384.
   */
  handlersMax?: number;
  /**
   * Limit of connections in their handshake. It applies separately to three groups: connections that have
   * sent nothing yet, connections that have sent something, and connections about which `authenticate` has
   * not decided yet. When the first or the last group exceeds the limit, its oldest connection is closed.
   * Default 128.
   */
  handshakesMax?: number;
  /**
   * Time limit of a handshake. Default 5000. A client is not refused when its next step arrived in time while
   * this thread was busy.
   */
  handshakeTimeoutMs?: number;
  /**
   * Time limit in ms of calls whose client sets no limit. When it passes, the server answers
   * DEADLINE_EXCEEDED. Default: `timeoutMaxMs`, or no limit if that is not set.
   */
  defaultTimeoutMs?: number;
  /**
   * Longest time in ms that a call may take, even when its client requests more. When it passes, the server
   * answers DEADLINE_EXCEEDED. Default: no limit.
   */
  timeoutMaxMs?: number;
  /**
   * Age in ms at which a connection is drained, plus or minus 10 %. The client opens a new connection for its
   * next call. Default: no limit.
   */
  connectionAgeMaxMs?: number;
  /** Time in ms without calls after which a connection is drained. Default: no limit. */
  connectionIdleMaxMs?: number;
  /**
   * Time in ms that calls in flight have to finish when age or idleness ends their connection. Default 60000.
   */
  connectionAgeGraceMs?: number;
  /** Runs for errors of handlers that are not RpcErrors. Callers get only INTERNAL and a fixed text. */
  onHandlerError?: OnHandlerError;
  /** The peers that may have a session, by verified identity. Default: all peers that can connect. */
  allow?: AllowedPeers;
  /**
   * Runs once for each connection, before the connection gets a session. Returns the identity of the peer, or
   * undefined to keep the verified identity. Throws to refuse the peer. `metadata` contains the credentials
   * of the channel.
   */
  authenticate?: Authenticate;
  /**
   * A table that says which identities may call which methods, or a function that decides for each call.
   * Methods that the table does not cover cannot be called. Default: every client with a session may call all
   * methods.
   */
  authorize?: AuthorizeFunction | AuthorizeTable;
  /**
   * Runs for each call that `authorize` has denied. An error that it throws becomes a process warning. The
   * `log` gets a line, too.
   */
  onDenied?: (call: DeniedCall) => void;
  /**
   * Limits of each identity: an object with the limits of all identities, or a function that returns the
   * limits of one identity. The limits apply to each server separately, and therefore to each worker of a
   * group. Default: only the limits of sessions apply.
   */
  quotas?: Quotas | QuotasOf;
  /**
   * Runs once for each connection, with its session or with the reason why it was refused. An error that it
   * throws becomes a process warning.
   */
  onSession?: OnSession;
  /**
   * TLS 1.3 on `host:port` addresses, from the first byte. With `ca` it is mutual TLS. Unix sockets do not
   * use TLS, because the kernel identifies the peer.
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
   * Receives one line per connection, at most 10 lines a second for each peer address. The line contains the
   * chosen fabric and the reasons against the other fabrics, or the reason why the handshake failed. Without
   * this option, a process warning is shown when a fabric was skipped. If `onSession` is not set either, a
   * process warning is also shown for the first refused client; further refusals are counted and summed up
   * once a minute.
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
