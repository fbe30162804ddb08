/**
 * What the harness asks of each framework that it measures. Ours and the limit are TypeScript in this folder;
 * the others are plain modules in bench/peers with dependencies of their own. `serve` runs in the server
 * process, `connect` in the client process.
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
  /** Reads every byte of the payload; the answer's id is how many that were. */
  put(message: Msg): Promise<Msg>;
}

export interface EndOptions {
  /** Path of a unix socket that this pair of processes has to itself. */
  socket: string;
  /** In place of that socket: a TCP port of 127.0.0.1. 0 lets the server choose. */
  port?: number;
  /** 'event': both sides sleep when there is nothing to do. Peers on sockets always do. */
  polling: 'adaptive' | 'event';
  /** What `descriptors()` made, as inherited by this process. */
  descriptors: readonly number[];
  /**
   * Of a peer with `tls`: a folder with `ca.pem`, and `cert.pem` and `key.pem` for both sides
   * (bench/credentials.ts).
   */
  tls?: string;
}

export interface BenchServer {
  /** Where it listens, when it was asked for a TCP port. */
  port?: number;
  close(): Promise<void>;
}

export interface BenchClient {
  /**
   * Memory for the requests of one worker (at most 8 of them), reused call after call: the kind of memory the
   * peer likes best.
   */
  buffer(worker: number, bytes: number): Uint8Array;
  /** The answer may lie in memory that the same worker's next call overwrites. */
  echo(message: Msg, worker: number): Promise<Msg>;
  put(message: Msg, worker: number): Promise<Msg>;
  /** Connects so many times more, and leaves these connections alone. */
  more?(connections: number): Promise<void>;
  close(): Promise<void>;
}

export interface Peer {
  readonly name: string;
  /** What carries the bytes: `shm`, `unix` … */
  readonly fabric: string;
  /** Its connections by TCP have TLS 1.3 with certificates of both sides. */
  readonly tls?: boolean;
  /** Its two sides are threads of the client process, which then has the CPUs of both. */
  readonly threads?: boolean;
  /** In place of two processes of ours: a program that measures itself. */
  measure?(scenario: Scenario, window: Window): Promise<Measurement>;
  /** The processes' program in place of this build's: an older build's. */
  readonly endFile?: string;
  /** Descriptors for both processes to inherit, made by the process that starts them. */
  descriptors?(): number[];
  serve(options: EndOptions, handlers: BenchHandlers): Promise<BenchServer>;
  connect(options: EndOptions): Promise<BenchClient>;
}
