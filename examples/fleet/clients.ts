/** The load of the fleet: channels that call without a pause, and what they saw. Used by main.ts. */
import { type Channel, createChannel, createClient, type Resolver, RpcError, statusName } from 'rdma-rpc';
import { GreeterDefinition } from '../hello/gen/greeter.rdma.ts';

/** What all clients saw since the last `take`. */
export interface Seen {
  /** Answers by the name of the server. */
  readonly answers: ReadonlyMap<string, number>;
  /** Errors by their code, without those that a retry has hidden. */
  readonly errors: ReadonlyMap<string, number>;
  readonly p99Ms: number;
}

export class Clients {
  readonly #channels: Channel[] = [];
  readonly #running: Promise<void>[] = [];
  #over = false;
  #answers = new Map<string, number>();
  #errors = new Map<string, number>();
  #times: number[] = [];

  /** Begins `count` clients with four calls in flight each. */
  constructor(resolver: Resolver, count: number) {
    for (let i = 0; i < count; ++i) {
      const channel = createChannel(resolver, { resolveMinMs: 50 });
      this.#channels.push(channel);
      const retry = { attemptsMax: 3, backoffMs: 5 };
      const greeter = createClient(GreeterDefinition, channel, {
        sayHello: { timeoutMs: 5_000, waitForReady: true, idempotent: true, retry },
      });
      const call = async (): Promise<void> => {
        const begin = performance.now();
        try {
          const { text } = await greeter.sayHello({ name: 'fleet' });
          this.#answers.set(text, (this.#answers.get(text) ?? 0) + 1);
          this.#times.push(performance.now() - begin);
        } catch (error) {
          const code = error instanceof RpcError ? statusName(error.code) : String(error);
          this.#errors.set(code, (this.#errors.get(code) ?? 0) + 1);
        }
      };
      const loop = async (): Promise<void> => {
        while (!this.#over) await call();
      };
      for (let n = 0; n < 4; ++n) this.#running.push(loop());
    }
  }

  take(): Seen {
    const times = this.#times.sort((a, b) => a - b);
    const seen = {
      answers: this.#answers,
      errors: this.#errors,
      p99Ms: times[Math.floor(times.length * 0.99)] ?? 0,
    };
    this.#answers = new Map();
    this.#errors = new Map();
    this.#times = [];
    return seen;
  }

  async end(): Promise<void> {
    this.#over = true;
    await Promise.all(this.#running);
    for (const channel of this.#channels) await channel.close();
  }
}
