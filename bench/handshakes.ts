/**
 * The measuring loop of connections, in the client process. A fixed number of connections is open at once;
 * each is closed when it is connected or has made its call. The CPU time of the two sides is reported
 * separately. Some thousand connections are made before the connections that count (Window.handshakesFirst).
 */
import { cpuMeter } from './cpu.ts';
import { Latencies } from './latencies.ts';
import type { Window } from './measure.ts';
import type { BenchClient } from './peer.ts';
import { type Measurement, notAsked } from './rows.ts';

const samplesMax = 1 << 16;
/** The interval in milliseconds at which the connections of the warm-up are checked. */
const pollMs = 10;

/** Rejects when a connection fails. `pids` are the process ids of the client and of the server. */
export async function measureHandshakes(
  connect: () => Promise<BenchClient>,
  atOnce: number,
  { warmupMs, measureMs, handshakesFirst = 0 }: Window,
  [client, server]: readonly [number, number],
): Promise<Measurement> {
  const latencies = new Latencies(samplesMax);
  let connected = 0;
  let counts = false;
  let over = false;
  const worker = async (): Promise<void> => {
    while (!over) {
      const begin = performance.now();
      const one = await connect();
      if (counts) latencies.record((performance.now() - begin) * 1000);
      ++connected;
      await one.close();
    }
  };
  const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));
  const workers = Promise.all(Array.from({ length: atOnce }, worker));
  const measured = async (): Promise<Measurement> => {
    await pause(warmupMs);
    while (connected < handshakesFirst && !over) await pause(pollMs);
    counts = true;
    const [meters, before, start] = [
      [client, server].map((pid) => cpuMeter([pid])),
      connected,
      performance.now(),
    ];
    const all = cpuMeter([client, server]);
    await pause(measureMs);
    const use = all();
    const [ofClient, ofServer] = meters.map((meter) => meter().cpuPercent) as [number, number];
    const seconds = (performance.now() - start) / 1000;
    const perSecond = (connected - before) / seconds;
    return {
      callsPerSecond: perSecond,
      bytesPerSecond: 0,
      ...latencies.percentiles(),
      ...use,
      ...notAsked,
      clientCpuUs: (ofClient * 1e4) / perSecond,
      serverCpuUs: (ofServer * 1e4) / perSecond,
    };
  };
  try {
    return await Promise.race([measured(), workers.then(() => Promise.reject(new Error('no handshake')))]);
  } finally {
    over = true;
    await workers;
  }
}
