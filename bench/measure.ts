/**
 * The measuring loop of the client process: `inFlight` workers, each starting its next call when its last one was answered. The warm-up runs
 * into the measured window without a pause, and only what is answered inside the window counts.
 */
import { type CpuUse, cpuMeter } from './cpu.ts';
import { endsRight, fillPayload } from './handlers.ts';
import { Latencies } from './latencies.ts';
import type { BenchClient, Msg } from './peer.ts';
import type { Measurement } from './rows.ts';
import type { Scenario } from './scenarios.ts';

const samplesMax = 1 << 20;
/** With many small calls in flight one in 16 is timed, so that reading the clock is not what is measured. */
const timedOneIn = 16;

export interface Window {
  warmupMs: number;
  measureMs: number;
}

/** Rejects when a call fails or an answer is not the one to that request. `pids`: whose CPU time to count. */
export async function measure(
  client: BenchClient,
  scenario: Scenario,
  window: Window,
  pids: readonly number[],
): Promise<Measurement> {
  const { kind, inFlight, payloadBytes, besideBytes } = scenario;
  const mask = inFlight >= 32 ? timedOneIn - 1 : 0;
  const latencies = new Latencies(samplesMax);
  const measureFrom = performance.now() + window.warmupMs;
  let sequence = 0;
  let answered = 0;
  let transferred = 0;
  let started: { at: number; answered: number; transferred: number; cpu: () => CpuUse } | undefined;
  let ended: { elapsedMs: number; calls: number; transfers: number; cpu: CpuUse } | undefined;

  const tick = (now: number, latencyMs: number): void => {
    if (now < measureFrom || ended !== undefined) return;
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

  const put = async (message: Msg, worker: number): Promise<void> => {
    const { id } = await client.put(message, worker);
    if (id !== message.payload.length)
      throw new Error(`the server read ${id} of ${message.payload.length} bytes`);
  };

  const transfer = async (worker: number): Promise<void> => {
    const payload = client.buffer(worker, besideBytes);
    fillPayload(payload);
    for (; ended === undefined; transferred++) await put({ payload, id: ++sequence }, worker);
  };

  const work = async (worker: number): Promise<void> => {
    const payload = client.buffer(worker, payloadBytes);
    fillPayload(payload);
    while (ended === undefined) {
      const id = ++sequence;
      const timed = (id & mask) === 0;
      const from = timed ? performance.now() : 0;
      const message = { payload, id };
      if (kind === 'put') {
        await put(message, worker);
      } else {
        const answer = await client.echo(message, worker);
        if (answer.id !== id || !endsRight(answer.payload, payloadBytes)) {
          throw new Error(
            `the answer to ${id} (${payloadBytes} bytes) is ${answer.id} (${answer.payload.length} bytes)`,
          );
        }
      }
      answered++;
      if (timed) {
        const now = performance.now();
        tick(now, now - from);
      }
    }
  };

  const workers = Array.from({ length: inFlight }, (_, worker) => work(worker));
  if (besideBytes > 0) workers.push(transfer(inFlight));
  await Promise.all(workers);
  const { elapsedMs, calls, transfers, cpu } = ended!;
  const callsPerSecond = (1000 * calls) / elapsedMs;
  return {
    callsPerSecond,
    bytesPerSecond:
      besideBytes > 0 ? (1000 * transfers * besideBytes) / elapsedMs : callsPerSecond * payloadBytes,
    bytesPerSession: 0,
    ...latencies.percentiles(),
    ...cpu,
  };
}
