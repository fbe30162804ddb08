/** The options of createServer: what each means, its default and its range. */
import { type CheckedFabricOptions, type FabricOptions, fabricRules } from '../control/fabric-options.ts';
import { type CheckedSecurity, type SecurityOptions, securityRules } from '../control/security-level.ts';
import { type SocketFile, socketRules } from '../control/socket/unix-path.ts';
import type { ServerTls, TlsSource } from '../control/tls/tls-options.ts';
import type { Log } from '../core/log.ts';
import { type OptionRules, ownedBy } from '../core/options.ts';
import type { OnHandlerError } from '../core/warnings.ts';
import * as limits from '../limits.ts';
import type { AllowedPeers, Authenticate, CheckedAllowedPeers } from './allowed.ts';
import type { OnSession } from './arrival.ts';
import type { AuthorizeFunction, AuthorizeTable, DeniedCall } from './authorize.ts';
import type { Quotas, QuotasOf } from './quotas.ts';

export interface ServerOptions extends FabricOptions {
  /** Calls in flight per session; the client may ask for fewer. Default 256. */
  inflightMax?: number;
  /** Streams open at once per session, at most; the client may ask for fewer. Default 64, 0 to allow none. */
  streamsMax?: number;
  /** Largest request accepted, bytes. Default 64 MiB, at most 4 GiB - 1. */
  messageMaxBytes?: number;
  /**
   * How long the memory stays that large `bytes` values of a request are views of. `call`, the default: until
   * the call has been answered and its handler is done; then those values are empty, unless the handler has
   * called `keep(request)`. `lease`: until `leaseOf(request)` is released, or the values are collected, as
   * with messages of streams always.
   */
  requestMemory?: 'lease' | 'call';
  /** Sessions at once. Default 1024. */
  sessionsMax?: number;
  /**
   * Sessions of one network address. Default 64. Connections that are not admitted yet have a count of their
   * own with the same maximum; one more pushes out the oldest. Unix sockets have no address and no such
   * limit.
   */
  sessionsPerPeerMax?: number;
  /**
   * Asynchronous handlers running at once, streams included, over all sessions. Default 16384; requests
   * beyond are refused with RESOURCE_EXHAUSTED, unread.
   */
  handlersMax?: number;
  /**
   * Connections whose handshake is not over and that have said nothing yet, as many that have, and as many
   * that `authenticate` is asked about. Default 128; one more of the first or the last pushes out the oldest
   * of them.
   */
  handshakesMax?: number;
  /** Default 5000. */
  handshakeTimeoutMs?: number;
  /**
   * Time limit of calls whose clients set none. When it passes, the server answers DEADLINE_EXCEEDED.
   * Default: that of timeoutMaxMs, else none.
   */
  defaultTimeoutMs?: number;
  /**
   * Longest time that a call may take, whatever its client says; the server answers as above. Default: none.
   */
  timeoutMaxMs?: number;
  /**
   * A connection older than this, 10 % more or less, is asked to go; the client makes a new one for its next
   * call. Default: none.
   */
  connectionAgeMaxMs?: number;
  /** A connection without calls for this long is asked to go. Default: none. */
  connectionIdleMaxMs?: number;
  /** What calls under way get when age or idleness ends their connection. Default 60000. */
  connectionAgeGraceMs?: number;
  /** Told about errors of handlers that are no RpcError. Callers learn only INTERNAL and a fixed text. */
  onHandlerError?: OnHandlerError;
  /** Who may have a session, by what was verified. Default: everybody who can connect. */
  allow?: AllowedPeers;
  /**
   * Asked once for each connection, before it gets a session: returns who the peer is, undefined for who it
   * is known to be; throws to refuse it. `metadata`: the credentials of the channel.
   */
  authenticate?: Authenticate;
  /**
   * Who may call what, by identity; what is not named nobody may call. Or a function that says so for each
   * call. Default: whoever has a session may call everything.
   */
  authorize?: AuthorizeFunction | AuthorizeTable;
  /**
   * Told of each call that `authorize` has denied. What it throws becomes a process warning. The `log` has a
   * line of it, too.
   */
  onDenied?: (call: DeniedCall) => void;
  /**
   * What each identity may use, alike for all of them or by a function; of each server, so of each worker of
   * a group. Default: no limits but those of sessions.
   */
  quotas?: Quotas | QuotasOf;
  /**
   * Told of each connection what became of it, once: that it has a session, or why not. What it throws
   * becomes a process warning.
   */
  onSession?: OnSession;
  /**
   * TLS 1.3 on `host:port` addresses, from the first byte; with `ca`, mutual. Unix sockets have none: the
   * kernel says who is there.
   */
  tls?: TlsSource<ServerTls>;
  /** What sessions must promise. */
  security?: SecurityOptions;
  /**
   * Rights, owner and group of the file that a unix socket is. Default: as the umask says, of this process.
   */
  socket?: SocketFile;
  /** What clients are told about this process. Default: its process id. */
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

/** Checked, with defaults. */
export type ResolvedServerOptions = Required<
  Omit<ServerOptions, Optional | 'allow' | 'tls' | 'security' | keyof FabricOptions>
> & {
  readonly allow: CheckedAllowedPeers;
  readonly security: CheckedSecurity;
} & Pick<ServerOptions, Optional> &
  CheckedFabricOptions;
