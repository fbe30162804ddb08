/** The measuring loops of the client process, one for each kind of scenario. */
import { once } from 'node:events';
import * as http from 'node:http';
import type { Duplex } from 'node:stream';
import { type CpuUse, cpuMeter } from '../cpu.ts';
import { Latencies, type Percentiles } from '../latencies.ts';
import type { Window } from '../measure.ts';
import type { SocketScenario } from './scenarios.ts';

/** `perSecond` counts writes, round trips or requests. The CPU time is that of both processes. */
export interface SocketMeasurement extends Percentiles, CpuUse {
  readonly perSecond: number;
}

const samplesMax = 1 << 20;
/** Connections that make HTTP requests, one request at a time on each connection. */
const httpConnections = 16;

/** Counts between the end of the warm-up and the end of the window. */
class Meter {
  readonly #from = performance.now();
  readonly #window: Window;
  readonly #pids: readonly number[];
  readonly #latencies = new Latencies(samplesMax);
  #measureFrom = 0;
  #count = 0;
  #cpu: (() => CpuUse) | undefined;
  result: SocketMeasurement | undefined;

  constructor(window: Window, pids: readonly number[]) {
    this.#window = window;
    this.#pids = pids;
  }

  /** Counts one more item, which began at `fromMs`. Returns true when the window is over. */
  add(fromMs: number): boolean {
    const now = performance.now();
    if (this.#cpu === undefined) {
      if (now - this.#from < this.#window.warmupMs) return false;
      this.#measureFrom = now;
      this.#cpu = cpuMeter(this.#pids);
      return false;
    }
    ++this.#count;
    this.#latencies.record((now - fromMs) * 1000);
    const elapsedMs = now - this.#measureFrom;
    if (elapsedMs < this.#window.measureMs) return false;
    this.result ??= {
      perSecond: (1000 * this.#count) / elapsedMs,
      ...this.#cpu(),
      ...this.#latencies.percentiles(),
    };
    return true;
  }
}

/** Writes until the window is over. The server must have read every byte; it reports the number of bytes. */
async function write(socket: Duplex, bytes: number, meter: Meter): Promise<void> {
  const block = Buffer.alloc(bytes, 7);
  let sent = 0;
  for (let over = false; !over; ) {
    const from = performance.now();
    sent += bytes;
    if (!socket.write(block)) await once(socket, 'drain');
    over = meter.add(from);
  }
  socket.end();
  let text = '';
  for await (const chunk of socket) text += String(chunk);
  if (Number(text) !== sent) throw new Error(`the server has read ${text} of ${sent} bytes`);
}

function ping(socket: Duplex, bytes: number, meter: Meter): Promise<void> {
  const block = Buffer.alloc(bytes, 7);
  return new Promise((resolve, reject) => {
    let from = performance.now();
    let missing = bytes;
    socket.once('error', reject);
    socket.on('data', (chunk: Buffer) => {
      missing -= chunk.byteLength;
      if (missing > 0) return;
      if (meter.add(from)) {
        socket.destroy();
        resolve();
        return;
      }
      missing = bytes;
      from = performance.now();
      socket.write(block);
    });
    socket.write(block);
  });
}

async function requests(open: () => Duplex, bytes: number, meter: Meter): Promise<void> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: httpConnections });
  agent.createConnection = open;
  const ask = (): Promise<number> =>
    new Promise((resolve, reject) => {
      const request = http.get({ agent, host: 'pages', path: '/' }, (response) => {
        let length = 0;
        response.on('data', (chunk: Buffer) => {
          length += chunk.byteLength;
        });
        response.once('end', () => resolve(length));
      });
      request.once('error', reject);
    });
  const client = async (): Promise<void> => {
    for (let over = false; !over; ) {
      const from = performance.now();
      const length = await ask();
      if (length !== bytes) throw new Error(`an answer of ${length} bytes came instead of ${bytes}`);
      over = meter.add(from);
    }
  };
  await Promise.all(Array.from({ length: httpConnections }, client));
  agent.destroy();
}

/** Rejects when a connection fails, or bytes are missing. `pids` are the processes whose CPU is counted. */
export async function measure(
  { kind, bytes }: SocketScenario,
  open: () => Duplex,
  window: Window,
  pids: readonly number[],
): Promise<SocketMeasurement> {
  const meter = new Meter(window, pids);
  if (kind === 'http') await requests(open, bytes, meter);
  else if (kind === 'write') await write(open(), bytes, meter);
  else await ping(open(), bytes, meter);
  if (meter.result === undefined) throw new Error('the measurement ended too early');
  return meter.result;
}
