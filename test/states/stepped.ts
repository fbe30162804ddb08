/**
 * A server and a client in this process, on a simulated fabric that does nothing by itself: each event of it (a message that arrives, a READ, a
 * completion) is carried out when the test says so, in an order that a seed decides. One at a time.
 */
import { type Channel, createInProcessTransport, type Server } from 'rdma-rpc';
import {
  acquireContext,
  contextStats,
  releaseContext,
  setContextOptions,
} from '../../runtime/call/contexts.ts';
import type { FabricContext } from '../../runtime/call/fabric-context.ts';
import { Ctl, type NativeStats } from '../../runtime/native.ts';
import { follow } from './clock.ts';

const sendSlots = 64;
const small = { slotBytes: 1024, arenaBytes: 64 * 1024 * 1024, sendSlots, mrCacheEntries: 8 };
/** What has not ended by then never will. */
const turnsMax = 20_000;
/** Twice the patience with a cancelled call, 5 ms for each step in which nothing happens. */
const restSteps = 20;

export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export interface Limits {
  readonly inflightMax: number;
  readonly streamsMax: number;
}

export class SteppedWorld {
  readonly channel: Channel;
  readonly #context: FabricContext;
  /** Numbers of the sessions made. */
  readonly #sessions: number[] = [];

  private constructor(channel: Channel) {
    this.channel = channel;
    // Held, or each lost connection would end in a world of its own.
    const context = acquireContext({ fabric: 'sim' });
    this.#context = context;
    const { clock } = context.native;
    Object.defineProperty(context.native, 'clock', { value: follow(clock) });
    const create = context.createSession;
    context.createSession = (options) => {
      const number = create.call(context, options);
      this.#sessions.push(number);
      return number;
    };
  }

  static async open(
    seed: number,
    limits: Limits,
    register: (server: Pick<Server, 'add'>) => void,
  ): Promise<SteppedWorld> {
    await closed();
    setContextOptions({ ...small, seed, stepped: true });
    const world = new SteppedWorld(createInProcessTransport(register, limits));
    const ready = world.channel.ready();
    let up = false;
    void ready.finally(() => {
      up = true;
    });
    await world.run(() => up);
    await ready;
    return world;
  }

  /** Carries events out until `done`. `each` is told before every one of them, and every time that there was none. */
  async run(done: () => boolean, each: () => void = () => undefined): Promise<void> {
    for (let turns = 0; !done(); ++turns) {
      if (turns > turnsMax) throw new Error('it never comes to an end');
      each();
      this.#context.native.stepSim();
      await turn();
    }
  }

  /** Until nothing is left to happen. */
  async rest(): Promise<void> {
    for (let still = 0; still < restSteps; ++still) {
      if (this.#context.native.stepSim()) still = 0;
      await turn();
    }
  }

  /** Ends every connection, from below. */
  lose(): void {
    for (const session of this.#sessions.splice(0))
      this.#context.native.closeSession(session, 'lost by the test');
  }

  /** What is not back where it belongs; the caller has released its leases. */
  books(): string[] {
    const wrong: string[] = [];
    const free = this.#context.native.control[Ctl.freeSlots];
    if (free !== sendSlots) wrong.push(`${free} of ${sendSlots} send slots are free`);
    const { arenaLeasedBlocks, protocolErrors } = this.stats;
    if (arenaLeasedBlocks !== 0) wrong.push(`${arenaLeasedBlocks} blocks of the arena are out`);
    if (protocolErrors !== 0) wrong.push(`${protocolErrors} protocol errors`);
    const inFlight = this.channel.session?.callsInFlight ?? 0;
    if (inFlight !== 0) wrong.push(`${inFlight} calls in flight`);
    return wrong;
  }

  get stats(): NativeStats {
    return contextStats('sim');
  }

  async close(): Promise<void> {
    let over = false;
    const close = this.channel.close().then(() => {
      over = true;
    });
    await this.run(() => over);
    await close;
    releaseContext(this.#context);
    await closed();
  }
}

/** Its context has gone, so that the next world can have another. */
async function closed(): Promise<void> {
  for (let turns = 0; ; ++turns) {
    try {
      return setContextOptions({});
    } catch (error) {
      if (turns > 10_000) throw error;
      await turn();
    }
  }
}
