/**
 * The two ends of a tunnel. The listening end takes connections of programs and carries them over one stream
 * (carrier.ts). The serving end connects each to the program behind it; it also takes sockets of
 * `rdma-rpc/socket`, for clients that need no tunnel.
 */
import type { ChannelOptions } from '../../runtime/client/channel-options.ts';
import { graceMs } from '../../runtime/limits.ts';
import { createServer } from '../../runtime/server/server.ts';
import type { ServerOptions } from '../../runtime/server/server-options.ts';
import { addSockets } from '../../runtime/socket/server.ts';
import { Carrier } from './carrier.ts';
import type { Report } from './conduit.ts';
import type { RelayCounts } from './counts.ts';
import { TunnelsDefinition } from './gen/rdma_rpc/tunnel.rdma.ts';
import { NearCarriers } from './near-carriers.ts';
import { connectTo, highWaterMark, listenOn } from './program-side.ts';
import { Programs } from './programs.ts';
import { relay } from './relay.ts';

export interface TunnelEnd {
  /** Where it listens. */
  readonly bound: string;
  /** Takes no more connections. Resolves when the last one has ended. */
  drain(): Promise<void>;
  /** Ends all connections at once. */
  destroy(): void;
}

/** The relay does not change what it has read, so it need not be copied. */
const ofSockets = { allowHalfOpen: true, writesStay: true, highWaterMark } as const;
/** What the option `streamsMax` may be at most. */
const streamsMax = 512;

/** `--listen`: from programs into the tunnel. Rejects when it cannot listen. */
export async function listeningEnd(
  listen: string,
  to: string,
  channel: ChannelOptions,
  counts: RelayCounts,
  report: Report,
): Promise<TunnelEnd> {
  const carriers = new NearCarriers(to, channel, counts, report);
  const programs = new Programs();
  const { server, bound } = await listenOn(listen, (program) => carriers.carry(programs.add(program)));
  const closed = new Promise<void>((resolve) => server.once('close', resolve));
  return {
    bound,
    drain: async () => {
      server.close();
      await closed;
      await carriers.close();
    },
    destroy: () => programs.destroy(),
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
  const carriers = new Set<Carrier>();
  const programs = new Programs();
  const server = createServer({ streamsMax, ...options });
  server.add(TunnelsDefinition, {
    carry: (frames, context) => {
      context.sendHeader();
      const carrier: Carrier = new Carrier({
        counts,
        report,
        accept: () => programs.add(connectTo(to)),
        onOver: () => carriers.delete(carrier),
      });
      carrier.open = true;
      carriers.add(carrier);
      void carrier.read(frames);
      return carrier;
    },
  });
  const sockets = addSockets(
    server,
    (tunnel) => relay(programs.add(connectTo(to)), tunnel, counts, report),
    ofSockets,
  );
  const bound = await server.listen(serve);
  return {
    bound,
    drain: async () => {
      sockets.close();
      for (const carrier of carriers) carrier.drain();
      await server.shutdown({ graceMs: graceMs.max });
      await programs.closed();
    },
    destroy: () => {
      programs.destroy();
      sockets.destroyConnections();
    },
  };
}
