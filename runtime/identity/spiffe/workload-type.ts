/** A workload as applications see it: what createWorkload() gives. What asks the agent is in workload.ts. */
import type { ChannelTls, ServerTls } from '../../control/tls/tls-options.ts';
import type { Log } from '../../core/log.ts';

export interface WorkloadOptions {
  /**
   * Where the agent listens: `unix:/path`, or `tcp://ADDRESS:PORT`. Default: what SPIFFE_ENDPOINT_SOCKET of
   * the environment says.
   */
  endpoint?: string;
  /**
   * Which identity, where the agent has several for this process: a SPIFFE id, or the operator's hint.
   * Default: the first.
   */
  id?: string;
  /**
   * Gets a line when the agent is away, and when it has given what cannot be used. Default: a process
   * warning.
   */
  log?: Log;
}

/** Whom a channel expects to be served by. */
export interface ExpectedServer {
  /** Its SPIFFE id, or one of several of a trust domain. */
  identity: string | readonly string[];
}

/** The identity of this process, and its certificates. */
export interface Workload extends AsyncDisposable {
  /** The SPIFFE id of this process; undefined until the agent has given one. */
  readonly identity: string | undefined;
  /**
   * Resolves when the agent has given an identity. Waits for as long as that takes; rejects when it is
   * closed.
   */
  ready(): Promise<void>;
  /**
   * For `createServer({ tls })`: clients must have certificates of the own trust domain, or of one that the
   * agent says it is federated with; each by the authorities of its own domain alone.
   */
  server(): () => Promise<ServerTls>;
  /** For `createChannel(address, { tls })`: the server must be the one that is expected. */
  channel(expected: ExpectedServer): () => Promise<ChannelTls>;
  /** Asks the agent no more. What has been given stays in use until it expires. */
  close(): Promise<void>;
}
