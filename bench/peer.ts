/**
 * The interface that the harness requires of each framework that it measures. Ours and the limit are
 * TypeScript in this folder. The others are plain modules in bench/peers with dependencies of their own.
 * `serve` runs in the server process, and `connect` runs in the client process.
 */
import type { Window } from './measure.ts';
import type { Measurement } from './rows.ts';
import type { Scenario } from './scenarios.ts';

export interface Msg {
  payload: Uint8Array;
  id: number;
}

/** The same two handlers for every peer (bench/handlers.ts). */
export interface BenchHandlers {
  echo(message: Msg): Promise<Msg>;
  /** Reads every byte of the payload. The answer's id is the number of bytes. */
  put(message: Msg): Promise<Msg>;
}

export interface EndOptions {
  /** The path of a unix socket that only this pair of processes uses. */
  socket: string;
  /** A TCP port of 127.0.0.1, which replaces that socket. With 0 the server chooses the port. */
  port?: number;
  /** With 'event' both sides sleep when they have nothing to do. Peers on sockets always sleep. */
  polling: 'adaptive' | 'event';
  /** The results of `descriptors()`, as inherited by this process. */
  descriptors: readonly number[];
  /**
   * A folder with `ca.pem`, and with `cert.pem` and `key.pem` for both sides, for a peer with `tls`
   * (bench/credentials.ts).
   */
  tls?: string;
}

export interface BenchServer {
  /** The port at which the server listens, when a TCP port was requested. */
  port?: number;
  close(): Promise<void>;
}

export interface BenchClient {
  /**
   * Returns memory for the requests of one worker (at most 8 workers), which is reused call after call. It is
   * the kind of memory that the peer prefers.
   */
  buffer(worker: number, bytes: number): Uint8Array;
  /** The answer may lie in memory that the same worker's next call overwrites. */
  echo(message: Msg, worker: number): Promise<Msg>;
  put(message: Msg, worker: number): Promise<Msg>;
  /** Opens this number of additional connections, and leaves them idle. */
  more?(connections: number): Promise<void>;
  close(): Promise<void>;
}

export interface Peer {
  readonly name: string;
  /** The transport of the bytes, such as `shm` or `unix`. */
  readonly fabric: string;
  /** Whether its TCP connections use TLS 1.3 with certificates of both sides. */
  readonly tls?: boolean;
  /** Whether its two sides are threads of the client process, which then has the CPUs of both. */
  readonly threads?: boolean;
  /** Measures with a program that measures itself, instead of our two processes. */
  measure?(scenario: Scenario, window: Window): Promise<Measurement>;
  /** The program of an older build, which the processes run in place of this build's program. */
  readonly endFile?: string;
  /**
   * Returns descriptors for both processes to inherit. The process that starts them creates the descriptors.
   */
  descriptors?(): number[];
  serve(options: EndOptions, handlers: BenchHandlers): Promise<BenchServer>;
  connect(options: EndOptions): Promise<BenchClient>;
}
