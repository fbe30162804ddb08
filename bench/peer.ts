/**
 * The interface that the harness requires of each framework that it measures. Ours and the limit are
 * TypeScript in this folder; the others are plain modules in bench/peers with dependencies of their own.
 * `serve` runs in the server process, `connect` in the client process.
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
  /** Reads every byte of the payload; the answer's id is the number of bytes. */
  put(message: Msg): Promise<Msg>;
}

export interface EndOptions {
  /** The path of a unix socket that only this pair of processes uses. */
  socket: string;
  /** Replaces that socket: a TCP port of 127.0.0.1. 0 lets the server choose. */
  port?: number;
  /** 'event': both sides sleep when they have nothing to do. Peers on sockets always do. */
  polling: 'adaptive' | 'event';
  /** The results of `descriptors()`, as inherited by this process. */
  descriptors: readonly number[];
  /**
   * For a peer with `tls`: a folder with `ca.pem`, and with `cert.pem` and `key.pem` for both sides
   * (bench/credentials.ts).
   */
  tls?: string;
}

export interface BenchServer {
  /** The port where it listens, when it was asked for a TCP port. */
  port?: number;
  close(): Promise<void>;
}

export interface BenchClient {
  /**
   * Memory for the requests of one worker (at most 8 of them), reused call after call: the kind of memory
   * that the peer prefers.
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
  /** The transport of the bytes: `shm`, `unix` … */
  readonly fabric: string;
  /** Its TCP connections use TLS 1.3 with certificates of both sides. */
  readonly tls?: boolean;
  /** Its two sides are threads of the client process, which then has the CPUs of both. */
  readonly threads?: boolean;
  /** Replaces our two processes by a program that measures itself. */
  measure?(scenario: Scenario, window: Window): Promise<Measurement>;
  /** The program of the processes in place of this build's: that of an older build. */
  readonly endFile?: string;
  /** Descriptors for both processes to inherit, created by the process that starts them. */
  descriptors?(): number[];
  serve(options: EndOptions, handlers: BenchHandlers): Promise<BenchServer>;
  connect(options: EndOptions): Promise<BenchClient>;
}
