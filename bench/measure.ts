/**
 * The measuring loop of the client process. It has `inFlight` workers, each of which starts its next call
 * when its last call has been answered. The warm-up continues into the measured window without a pause, and
 * only answers inside the window count.
 */
import { type CpuUse, cpuMeter } from './cpu.ts';
import { endsRight, fillPayload } from './handlers.ts';
import { Latencies } from './latencies.ts';
import type { BenchClient, Msg } from './peer.ts';
import { type Measurement, notAsked } from './rows.ts';
import type { Scenario } from './scenarios.ts';

const samplesMax = 1 << 20;
/**
 * With many small calls in flight, one in 16 is timed, so that reading the clock does not dominate the
 * measurement.
 */
const timedOneIn = 16;

export interface Window {
  /**
   * Duration of the warm-up from the first call on, in milliseconds. Until its end, only the first calls
   * themselves count (`firstMs`).
   */
  warmupMs: number;
  measureMs: number;
  /** The number of handshakes before those that count, independent of their duration. Default: none. */
  handshakesFirst?: number;
  /**
   * Time in milliseconds for which the first calls are counted, as a separate figure. By default they are not
   * counted.
   */
  firstMs?: number;
  /**
   * Time in milliseconds for which both processes of a scenario of kind 'rest' are idle before their memory
   * is read again.
   */
  restMs?: number;
}

/**
 * Rejects when a call fails or an answer does not belong to its request. The workers use the `clients` in
 * turn. `pids` are the processes whose CPU time is counted.
 */
export async function measure(
  clients: readonly BenchClient[],
  scenario: Scenario,
  window: Window,
  pids: readonly number[],
): Promise<Measurement> {
  const { kind, inFlight, payloadBytes, besideBytes, mixedBytes, mixedTenths } = scenario;
  const mask = inFlight >= 32 ? timedOneIn - 1 : 0;
  const latencies = new Latencies(samplesMax);
  let sequence = 0;
  let answered = 0;
  let transferred = 0;
  let began = 0;
  let firstCpu = (): CpuUse => ({ cpuPercent: 0, othersPercent: 0 });
  let firstCallsPerSecond = 0;
  let firstOthersPercent = 0;
  let started: { at: number; answered: number; transferred: number; cpu: () => CpuUse } | undefined;
  let ended: { elapsedMs: number; calls: number; transfers: number; cpu: CpuUse } | undefined;

  const endFirst = (now: number): void => {
    firstCallsPerSecond = (1000 * answered) / (now - began);
    firstOthersPercent = firstCpu().othersPercent;
  };

  const tick = (now: number, latencyMs: number): void => {
    if (firstCallsPerSecond === 0 && window.firstMs !== undefined && now - began >= window.firstMs)
      endFirst(now);
    if (now < began + window.warmupMs || ended !== undefined) return;
    if (started === undefined) {
      started = { at: now, answered, transferred, cpu: cpuMeter(pids) };
      return;
    }
    latencies.record(latencyMs * 1000);
    const elapsedMs = now - started.at;
    if (elapsedMs < window.measureMs) return;
    ended = {
      elapsedMs,
      calls: answered - started.answered,
      transfers: transferred - started.transferred,
      cpu: started.cpu(),
    };
  };

  const clientOf = (worker: number): BenchClient => clients[worker % clients.length]!;

  const put = async (message: Msg, worker: number): Promise<void> => {
    const { id } = await clientOf(worker).put(message, worker);
    if (id !== message.payload.length)
      throw new Error(`the server read ${id} of ${message.payload.length} bytes`);
  };

  const payloadOf = (worker: number, bytes: number): Uint8Array => {
    const payload = clientOf(worker).buffer(worker, bytes);
    fillPayload(payload);
    return payload;
  };

  const transfer = async (worker: number): Promise<void> => {
    const payload = payloadOf(worker, besideBytes);
    for (; ended === undefined; transferred++) await put({ payload, id: ++sequence }, worker);
  };

  const work = async (worker: number, small: Uint8Array): Promise<void> => {
    const client = clientOf(worker);
    const beyond = worker + inFlight * clients.length;
    const large = mixedBytes === 0 ? small : payloadOf(beyond, mixedBytes);
    while (ended === undefined) {
      const id = ++sequence;
      const timed = (id & mask) === 0;
      const from = timed ? performance.now() : 0;
      // The large calls are spread over each ten calls, so that they do not follow each other.
      const isLarge = (id * mixedTenths) % 10 < mixedTenths;
      const payload = isLarge ? large : small;
      const message = { payload, id };
      if (kind === 'put') {
        await put(message, worker);
      } else {
        const answer = await client.echo(message, isLarge ? beyond : worker);
        if (answer.id !== id || !endsRight(answer.payload, payload.length)) {
          throw new Error(
            `the answer to ${id} (${payload.length} bytes) is ${answer.id} (${answer.payload.length} bytes)`,
          );
        }
      }
      answered++;
      if (timed) {
        const now = performance.now();
        tick(now, now - from);
      }
    }
    // No later scenario of this pair requests memory by this number, so the memory would stay out of the
    // arena.
    if (mixedBytes !== 0) clientOf(beyond).buffer(beyond, 0);
  };

  // The payloads are created first, because creating them takes time that must not count for the first calls.
  const payloads = Array.from({ length: inFlight }, (_, worker) => payloadOf(worker, payloadBytes));
  if (window.firstMs !== undefined) firstCpu = cpuMeter(pids);
  began = performance.now();
  const workers = payloads.map((payload, worker) => work(worker, payload));
  if (besideBytes > 0) workers.push(transfer(inFlight));
  await Promise.all(workers);
  const { elapsedMs, calls, transfers, cpu } = ended!;
  const callsPerSecond = (1000 * calls) / elapsedMs;
  const meanBytes = payloadBytes + ((mixedBytes - payloadBytes) * mixedTenths) / 10;
  return {
    callsPerSecond,
    bytesPerSecond:
      besideBytes > 0 ? (1000 * transfers * besideBytes) / elapsedMs : callsPerSecond * meanBytes,
    ...notAsked,
    firstCallsPerSecond,
    ...latencies.percentiles(),
    ...cpu,
    // When one of the two windows was disturbed, the whole row counts as disturbed.
    othersPercent: Math.max(firstOthersPercent, cpu.othersPercent),
  };
}
