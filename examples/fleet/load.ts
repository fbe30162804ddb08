/**
 * The load of the fleet: clients of the gateway that call without a pause, and the results that they saw.
 * main.ts uses this file.
 */
import { Agent, request } from 'node:http';

/** The results of all clients since the last `take`. */
export interface Seen {
  /** Answers by the name of the server. */
  readonly answers: ReadonlyMap<string, number>;
  /** Number of errors by their code. */
  readonly errors: ReadonlyMap<string, number>;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Sends JSON, and resolves with the status and the JSON of the answer. */
export function ask(agent: Agent, url: string, body?: unknown): Promise<{ status: number; json: unknown }> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { agent, method: body === undefined ? 'GET' : 'POST' }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.once('error', reject);
      response.once('end', () => resolve({ status: response.statusCode!, json: JSON.parse(text) }));
    });
    sent.once('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

export class Callers {
  readonly #agent: Agent;
  readonly #running: Promise<void>[];
  #over = false;
  #answers = new Map<string, number>();
  #errors = new Map<string, number>();
  #times: number[] = [];

  /** Starts `count` clients of the gateway at this URL, each with one call in flight. */
  constructor(gateway: string, count: number) {
    this.#agent = new Agent({ keepAlive: true, maxSockets: count });
    const url = `${gateway}/greeter.v1.Greeter/SayHello`;
    const loop = async (): Promise<void> => {
      while (!this.#over) await this.#call(url);
    };
    this.#running = Array.from({ length: count }, loop);
  }

  async #call(url: string): Promise<void> {
    const begin = performance.now();
    const { status, json } = await ask(this.#agent, url, { name: 'fleet' }).catch((error: unknown) => ({
      status: 0,
      json: { code: String(error) },
    }));
    const { text = '', code = `HTTP ${status}` } = json as { text?: string; code?: string };
    const [counts, name] = status === 200 ? [this.#answers, text] : [this.#errors, code];
    counts.set(name, (counts.get(name) ?? 0) + 1);
    this.#times.push(performance.now() - begin);
  }

  take(): Seen {
    const times = this.#times.sort((a, b) => a - b);
    const at = (share: number): number => times[Math.floor(times.length * share)] ?? 0;
    const seen = { answers: this.#answers, errors: this.#errors, p50Ms: at(0.5), p99Ms: at(0.99) };
    this.#answers = new Map();
    this.#errors = new Map();
    this.#times = [];
    return seen;
  }

  async end(): Promise<void> {
    this.#over = true;
    await Promise.all(this.#running);
    this.#agent.destroy();
  }
}
