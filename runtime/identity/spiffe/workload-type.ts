/** The types of createWorkload(): its options and its result. The implementation is in workload.ts. */
import type { ChannelTls, ServerTls } from '../../control/tls/tls-options.ts';
import type { Log } from '../../core/log.ts';

export interface WorkloadOptions {
  /**
   * The address on which the agent listens: `unix:/path` or `tcp://ADDRESS:PORT`. Default: the environment
   * variable SPIFFE_ENDPOINT_SOCKET.
   */
  endpoint?: string;
  /**
   * The identity to use when the agent has several for this process. It is a SPIFFE id, or the hint that the
   * operator gave the identity. Default: the first identity.
   */
  id?: string;
  /**
   * Receives a line when the agent cannot be reached and when its response cannot be used. Default: a process
   * warning is shown.
   */
  log?: Log;
}

/** The server that a channel accepts. */
export interface ExpectedServer {
  /** The SPIFFE id of the server, or several ids of one trust domain. */
  identity: string | readonly string[];
}

/** The identity of this process, and its certificates. */
export interface Workload extends AsyncDisposable {
  /** The SPIFFE id of this process. It is undefined until the agent has provided it. */
  readonly identity: string | undefined;
  /**
   * Resolves when the agent has provided an identity. Waits without a time limit. Rejects when the workload
   * is closed.
   */
  ready(): Promise<void>;
  /**
   * Returns a source for `createServer({ tls })`. Clients need certificates of our own trust domain, or of a
   * domain that the agent reports as federated. Each certificate is verified only with the authorities of its
   * own domain.
   */
  server(): () => Promise<ServerTls>;
  /** Returns a source for `createChannel(address, { tls })`, which accepts only the expected server. */
  channel(expected: ExpectedServer): () => Promise<ChannelTls>;
  /** Stops requests to the agent. The current certificates stay in use until they expire. */
  close(): Promise<void>;
}
