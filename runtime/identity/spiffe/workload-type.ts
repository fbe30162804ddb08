/** The types of createWorkload(): its options and its result. The implementation is in workload.ts. */
import type { ChannelTls, ServerTls } from '../../control/tls/tls-options.ts';
import type { Log } from '../../core/log.ts';

export interface WorkloadOptions {
  /**
   * Where the agent listens: `unix:/path`, or `tcp://ADDRESS:PORT`. Default: the environment variable
   * SPIFFE_ENDPOINT_SOCKET.
   */
  endpoint?: string;
  /**
   * Which identity to use when the agent has several for this process: a SPIFFE id, or the operator's hint.
   * Default: the first.
   */
  id?: string;
  /**
   * Gets a line when the agent is unreachable, and when its response is unusable. Default: a process warning.
   */
  log?: Log;
}

/** The server that a channel accepts. */
export interface ExpectedServer {
  /** Its SPIFFE id, or several of one trust domain. */
  identity: string | readonly string[];
}

/** The identity of this process, and its certificates. */
export interface Workload extends AsyncDisposable {
  /** The SPIFFE id of this process; undefined until the agent has provided one. */
  readonly identity: string | undefined;
  /**
   * Resolves when the agent has provided an identity. Waits without a limit; rejects when the workload is
   * closed.
   */
  ready(): Promise<void>;
  /**
   * For `createServer({ tls })`: clients need certificates of our own trust domain, or of a domain that the
   * agent reports as federated; each is verified with the authorities of its own domain alone.
   */
  server(): () => Promise<ServerTls>;
  /** For `createChannel(address, { tls })`: the server must be the expected one. */
  channel(expected: ExpectedServer): () => Promise<ChannelTls>;
  /** Stops asking the agent. The current certificates stay in use until they expire. */
  close(): Promise<void>;
}
