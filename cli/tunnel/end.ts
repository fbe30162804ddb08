/**
 * The two ends of a tunnel. The listening end takes connections of programs and opens a socket of
 * `rdma-rpc/socket` for each; the serving end takes those and connects each to the program behind it.
 */
import type { Socket as NetSocket } from 'node:net';
import type { ChannelOptions } from '../../runtime/client/channel-options.ts';
import type { ServerOptions } from '../../runtime/server/server-options.ts';
import { connect } from '../../runtime/socket/connect.ts';
import { createServer } from '../../runtime/socket/server.ts';
import type { Socket } from '../../runtime/socket/socket.ts';
import { connectTo, highWaterMark, listenOn } from './program-side.ts';
import { type RelayCounts, relay } from './relay.ts';

export interface TunnelEnd {
  /** Where it listens. */
  readonly bound: string;
  /** Takes no more connections. Resolves when the last one has ended. */
  drain(): Promise<void>;
  /** Ends all connections at once. */
  destroy(): void;
}

export type Report = (error: NodeJS.ErrnoException, wasConnecting: boolean) => void;

/** The relay does not change what it has read, so it need not be copied. */
const ofTunnel = { allowHalfOpen: true, writesStay: true, highWaterMark } as const;

/** The connections of an end. */
class Pairs {
  readonly #pairs = new Set<NetSocket>();
  readonly #counts: RelayCounts;
  readonly #report: Report;

  constructor(counts: RelayCounts, report: Report) {
    this.#counts = counts;
    this.#report = report;
  }

  add(program: NetSocket, tunnel: Socket): void {
    this.#pairs.add(program);
    program.once('close', () => this.#pairs.delete(program));
    relay(program, tunnel, this.#counts, this.#report);
  }

  destroy(): void {
    for (const program of this.#pairs) program.destroy();
  }
}

/** `--listen`: from programs into the tunnel. Rejects when it cannot listen. */
export async function listeningEnd(
  listen: string,
  to: string,
  channel: ChannelOptions,
  counts: RelayCounts,
  report: Report,
): Promise<TunnelEnd> {
  const pairs = new Pairs(counts, report);
  const { server, bound } = await listenOn(listen, (program) => {
    pairs.add(program, connect(to, { ...ofTunnel, channel }));
  });
  const closed = new Promise<void>((resolve) => server.once('close', resolve));
  return {
    bound,
    drain: () => {
      server.close();
      return closed;
    },
    destroy: () => pairs.destroy(),
  };
}

/** `--serve`: out of the tunnel to a program. Rejects when it cannot listen. */
export async function servingEnd(
  serve: string,
  to: string,
  options: ServerOptions,
  counts: RelayCounts,
  report: Report,
): Promise<TunnelEnd> {
  const pairs = new Pairs(counts, report);
  const server = createServer({ ...ofTunnel, server: options }, (tunnel) => {
    pairs.add(connectTo(to), tunnel);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(serve, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const closed = new Promise<void>((resolve) => server.once('close', () => resolve()));
  return {
    bound: server.where ?? serve,
    drain: () => {
      server.close();
      return closed;
    },
    destroy: () => {
      pairs.destroy();
      server.destroyConnections();
    },
  };
}
