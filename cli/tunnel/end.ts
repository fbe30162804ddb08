/**
 * The two ends of a tunnel. The listening end accepts connections of programs and carries them over one
 * stream (carrier.ts). The serving end connects each of them to the program behind it. The serving end also
 * accepts sockets of `rdma-rpc/socket`, for clients that need no tunnel.
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
  /** The address on which this end listens. */
  readonly bound: string;
  /** Accepts no more connections. Resolves when the last connection has ended. */
  drain(): Promise<void>;
  /** Resets all connections. */
  destroy(): void;
}

/** `writesStay`: the relay does not change the bytes that it has read, so they do not have to be copied. */
const ofSockets = { allowHalfOpen: true, writesStay: true, highWaterMark } as const;
/** The largest value of the option `streamsMax`. */
const streamsMax = 512;

/** Starts the end of `--listen`, which takes connections of programs. Rejects when it cannot listen. */
export async function listeningEnd(
  listen: string,
  to: string,
  channel: ChannelOptions,
  counts: RelayCounts,
  report: Report,
): Promise<TunnelEnd> {
  const carriers = new NearCarriers(to, channel, counts, report);
  const programs = new Programs();
  const { server, bound, stop } = await listenOn(listen, (program) => carriers.carry(programs.add(program)));
  const closed = new Promise<void>((resolve) => server.once('close', resolve));
  return {
    bound,
    drain: async () => {
      stop();
      await closed;
      await carriers.close();
    },
    destroy: () => {
      programs.reset();
      carriers.destroy();
    },
  };
}

/** Starts the end of `--serve`, which connects to the program behind it. Rejects when it cannot listen. */
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
      // The listening end sees only headers that are not empty.
      context.header.set('tunnel', '1');
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
      programs.reset();
      sockets.destroyConnections();
    },
  };
}
