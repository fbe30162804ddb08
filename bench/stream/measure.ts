/**
 * The measuring loop of the client process, with one stream that runs through warm-up and measured window
 * without a pause.
 */
import { type CpuUse, cpuMeter } from '../cpu.ts';
import { Latencies, type Percentiles } from '../latencies.ts';
import type { Window } from '../measure.ts';
import type { StreamClient } from './peer.ts';
import type { StreamScenario } from './scenarios.ts';

export interface StreamMeasurement extends Percentiles, CpuUse {
  readonly messagesPerSecond: number;
}

const samplesMax = 1 << 20;
/** Number of small items between two readings of the clock. */
const itemsPerClock = 64;
const largeMin = 4096;

/** Counts the items inside the window. */
class Meter {
  readonly #mask: number;
  readonly #measureFrom: number;
  readonly #window: Window;
  readonly #pids: readonly number[];
  #items = 0;
  #from = 0;
  #before = 0;
  #cpu: (() => CpuUse) | undefined;
  result: ({ readonly messagesPerSecond: number } & CpuUse) | undefined;

  constructor(window: Window, largeItems: boolean, pids: readonly number[]) {
    this.#mask = largeItems ? 0 : itemsPerClock - 1;
    this.#measureFrom = performance.now() + window.warmupMs;
    this.#window = window;
    this.#pids = pids;
  }

  get measuring(): boolean {
    return this.#cpu !== undefined;
  }

  get items(): number {
    return this.#items;
  }

  /** Counts one more item. Returns true when the window is over. */
  item(): boolean {
    if ((++this.#items & this.#mask) !== 0) return false;
    const now = performance.now();
    if (this.#cpu === undefined) {
      if (now < this.#measureFrom) return false;
      this.#from = now;
      this.#before = this.#items;
      this.#cpu = cpuMeter(this.#pids);
      return false;
    }
    const elapsedMs = now - this.#from;
    if (elapsedMs < this.#window.measureMs) return false;
    const messagesPerSecond = (1000 * (this.#items - this.#before)) / elapsedMs;
    this.result ??= { messagesPerSecond, ...this.#cpu() };
    return true;
  }
}

/**
 * Rejects when the stream fails, or when an item has a wrong length. `pids` are the processes whose CPU time
 * is counted.
 */
export async function measure(
  client: StreamClient,
  { kind, bytes }: StreamScenario,
  window: Window,
  pids: readonly number[],
): Promise<StreamMeasurement> {
  const large = bytes >= largeMin;
  const meter = new Meter(window, large || kind === 'chat', pids);
  const latencies = new Latencies(samplesMax);
  const check = (payload: Uint8Array): void => {
    if (payload.byteLength !== bytes || payload[bytes - 1] !== 7)
      throw new Error(`an item of ${payload.byteLength} bytes came instead of ${bytes}`);
  };
  const own = client.buffer(bytes).fill(7);
  if (kind === 'download') {
    await client.download(bytes, (payload) => {
      check(payload);
      return meter.item();
    });
  } else if (kind === 'upload') {
    let sent = 0;
    let over = false;
    const counted = await client.upload(() => {
      if (over) return undefined;
      ++sent;
      over = meter.item();
      return own;
    });
    if (counted !== sent) throw new Error(`the server has counted ${counted} of ${sent} items`);
  } else {
    let from = 0;
    let over = false;
    await client.chat(
      () => {
        if (over) return undefined;
        from = performance.now();
        return own;
      },
      (payload) => {
        if (meter.measuring) latencies.record((performance.now() - from) * 1000);
        check(payload);
        over = meter.item();
      },
    );
  }
  if (meter.result === undefined) throw new Error('the stream ended too early');
  return { ...meter.result, ...latencies.percentiles() };
}
