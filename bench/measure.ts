/**
 * The measuring loop of the client process: `inFlight` workers, each starting its next call when its last one
 * was answered. The warm-up runs into the measured window without a pause, and only what is answered inside
 * the window counts.
 */
import { type CpuUse, cpuMeter } from './cpu.ts';
import { endsRight, fillPayload } from './handlers.ts';
import { Latencies } from './latencies.ts';
import type { BenchClient, Msg } from './peer.ts';
import { type Measurement, notAsked } from './rows.ts';
import type { Scenario } from './scenarios.ts';

const samplesMax = 1 << 20;
/** With many small calls in flight one in 16 is timed, so that reading the clock is not what is measured. */
const timedOneIn = 16;

export interface Window {
  /** From the first call on; until then nothing counts but the first calls themselves (`firstMs`). */
  warmupMs: number;
  measureMs: number;
  /** Of handshakes: so many connections before those that count, however long they take. Default: none. */
  handshakesFirst?: number;
  /** How long the first calls are counted, as a figure of their own. Default: they are not. */
  firstMs?: number;
  /**
   * How long both processes of a scenario of kind 'rest' do nothing before their memory is looked at again.
   */
  restMs?: number;
}

/**
 * Rejects when a call fails or an answer is not the one to that request. The workers take the `clients` in
 * turn. `pids`: whose CPU time to count.
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
      // Spread over each ten, so that large ones do not come in a row.
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
    // No later scenario of this pair asks for memory by that number, so it would stay out of the arena.
    if (mixedBytes !== 0) clientOf(beyond).buffer(beyond, 0);
  };

  // Making them takes time, which is none of the first calls'.
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
    // Either window that others have used disturbs the row.
    othersPercent: Math.max(firstOthersPercent, cpu.othersPercent),
  };
}
