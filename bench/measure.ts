/**
 * The measuring loop of the client process: `inFlight` workers, each starting its next call when its last one was answered. The warm-up runs
 * into the measured window without a pause, and only what is answered inside the window counts.
 */
import { type CpuUse, cpuMeter } from './cpu.ts';
import { endsRight, fillPayload } from './handlers.ts';
import { Latencies } from './latencies.ts';
import type { BenchClient } from './peer.ts';
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
  const { kind, inFlight, payloadBytes } = scenario;
  const mask = inFlight >= 32 ? timedOneIn - 1 : 0;
  const latencies = new Latencies(samplesMax);
  const measureFrom = performance.now() + window.warmupMs;
  let sequence = 0;
  let answered = 0;
  let started: { at: number; answered: number; cpu: () => CpuUse } | undefined;
  let ended: { elapsedMs: number; calls: number; cpu: CpuUse } | undefined;

  const tick = (now: number, latencyMs: number): void => {
    if (now < measureFrom || ended !== undefined) return;
    if (started === undefined) {
      started = { at: now, answered, cpu: cpuMeter(pids) };
      return;
    }
    latencies.record(latencyMs * 1000);
    const elapsedMs = now - started.at;
    if (elapsedMs < window.measureMs) return;
    ended = { elapsedMs, calls: answered - started.answered, cpu: started.cpu() };
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
        const answer = await client.put(message, worker);
        if (answer.id !== payloadBytes)
          throw new Error(`the server read ${answer.id} of ${payloadBytes} bytes`);
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

  await Promise.all(Array.from({ length: inFlight }, (_, worker) => work(worker)));
  const { elapsedMs, calls, cpu } = ended!;
  const callsPerSecond = (1000 * calls) / elapsedMs;
  return {
    callsPerSecond,
    bytesPerSecond: callsPerSecond * payloadBytes,
    ...latencies.percentiles(),
    ...cpu,
  };
}
