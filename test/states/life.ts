/**
 * Runs a world with a client and a server and with calls in progress, and a list of actions with the steps at
 * which they are carried out. The tests of this folder use it.
 */
import { createClient } from 'rdma-rpc';
import { type Peers, peersOf, type ReverseServer, serveReverse } from 'rdma-rpc/reverse';
import type { RpcServer } from '../../runtime/server/server.ts';
import { InteropDefinition } from '../interop/gen/interop.rdma.ts';
import { type Kind, kindsOf, type TestClient } from './calls.ts';
import { passTime } from './clock.ts';
import { handlersOf } from './handlers.ts';
import { type Entry, Ledger, type Misfortune, singles } from './ledger.ts';
import { patience } from './patience.ts';
import { Pauses } from './pauses.ts';
import { Random } from './random.ts';
import { type Fabric, SteppedWorld } from './stepped.ts';

export const limits = { inflightMax: 4, streamsMax: 3 };
/** The time limit of a call that is to end at its time limit. It is longer than any delay of the test. */
const timeoutMs = 60_000;
/** This is more than the time by which a deadline may fire late. */
const lateMs = 10;

/** Together with the calls in progress, these are more calls than fit a connection at once. */
const unheardCalls = 4;

/** Maximum number of calls that begin in the last events of a session. */
const lateCalls = 8;

/** A call in progress. */
export interface Plan {
  readonly entry: Entry;
  /**
   * Number of events of the fabric between the call's start and the moment at which the test disturbs the
   * call.
   */
  readonly step: number;
  readonly giveUp: AbortController;
  /** Number of events since the start. */
  events: number;
}

export class Life {
  readonly ledger = new Ledger();
  readonly random: Random;
  readonly kinds: Readonly<Record<string, Kind>>;
  readonly world: SteppedWorld;

  readonly #pauses: Pauses;
  readonly #client: TestClient;
  readonly #serving: ReverseServer | undefined;
  #plans: Plan[] = [];

  private constructor(
    world: SteppedWorld,
    pauses: Pauses,
    ledger: Ledger,
    random: Random,
    peers: Peers | undefined,
  ) {
    this.world = world;
    this.ledger = ledger;
    this.random = random;
    this.#pauses = pauses;
    this.#client = createClient(InteropDefinition, world.channel);
    this.kinds = kindsOf(ledger, pauses, random, peers);
    if (peers !== undefined) {
      this.#serving = serveReverse(world.channel).add(InteropDefinition, handlersOf(ledger, pauses, random));
    }
  }

  /** With `reverse` the client also serves calls of its server. */
  static async open(seed: number, reverse = false, fabric: Fabric = 'sim'): Promise<Life> {
    const random = new Random(seed);
    const ledger = new Ledger();
    const pauses = new Pauses();
    let peers: Peers | undefined;
    const register = (server: RpcServer): void => {
      if (reverse) peers = peersOf(server);
      server.add(InteropDefinition, handlersOf(ledger, pauses, random));
    };
    const world = await SteppedWorld.open(seed, limits, register, fabric);
    const life = new Life(world, pauses, ledger, random, peers);
    if (peers !== undefined) await world.run(() => peers?.all.length === 1);
    return life;
  }

  start(what: string, misfortune: Misfortune, step: number): Plan {
    const entry = this.ledger.add(what);
    entry.misfortune = misfortune;
    const plan = { entry, step, giveUp: new AbortController(), events: 0 };
    if (step === 0) this.#interfere(plan);
    this.#plans.push(plan);
    const limit = misfortune === 'deadline' ? { timeoutMs } : {};
    this.kinds[what]!(this.#client, entry, { signal: plan.giveUp.signal, ...limit }).then(
      () => this.ledger.end(entry),
      (error: unknown) => this.ledger.end(entry, error),
    );
    return plan;
  }

  #interfere({ entry, giveUp }: Plan): void {
    if (entry.misfortune === 'cancel') giveUp.abort();
    if (entry.misfortune === 'deadline') passTime(timeoutMs + lateMs);
    if (entry.misfortune === 'loss') this.world.lose();
    if (entry.misfortune === 'busy loss') this.#loseAmongCalls();
    if (entry.misfortune === 'drain') this.world.replace();
    if (entry.misfortune === 'deaf drain') this.#replaceUnheard();
  }

  /** Ends connections while code of the application runs around each of the events of the end. */
  #loseAmongCalls(): void {
    const kinds = Object.keys(this.kinds).filter((name) => !name.startsWith('reverse'));
    let left = lateCalls;
    this.world.lose(() => {
      if (left-- > 0) this.start(this.random.pick(kinds), 'none', 0);
    });
  }

  /**
   * Replaces the server without the client's knowledge: the client learns only from responses that its server
   * is shutting down, so calls that it makes before are rejected.
   */
  #replaceUnheard(): void {
    const { ms } = patience;
    patience.ms = 0;
    this.world.replace(true);
    patience.ms = ms;
    // After this loop the timer of the replacement is due in the next iteration of the event loop.
    const end = Date.now() + 3;
    while (Date.now() < end);
    for (let i = 0; i < unheardCalls; ++i) this.start(this.random.pick(singles), 'none', 0);
  }

  /** Runs until all calls have ended and the events that follow them have been handled. */
  async goOn(): Promise<void> {
    await this.world.run(
      () => this.ledger.open === 0,
      () => {
        for (const plan of this.#plans) if (++plan.events === plan.step) this.#interfere(plan);
        this.#pauses.tick();
      },
    );
    this.world.hear();
    await this.world.run(
      () => this.#pauses.empty,
      () => this.#pauses.tick(),
    );
    await this.world.rest();
    this.#plans = [];
    // Calls have begun in the last events of a session, which ended after those events.
    if (this.ledger.open > 0) await this.goOn();
  }

  async #stopServing(): Promise<void> {
    if (this.#serving === undefined) return;
    let over = false;
    void this.#serving.close().then(() => {
      over = true;
    });
    await this.world.run(() => over);
    await this.world.rest();
  }

  /** Returns everything that broke a rule. The life is over afterwards. */
  async end(): Promise<string[]> {
    await this.#stopServing();
    const before = this.world.books().map((fault) => `after the calls: ${fault}`);
    // Makes more calls than fit at once. The calls go through only if every call slot and credit is free
    // again.
    const names = Object.keys(this.kinds).filter((name) => !name.startsWith('reverse'));
    for (let i = 0; i < 2 * limits.inflightMax; ++i) this.start(this.random.pick(names), 'none', 0);
    await this.goOn();
    const faults = [...before, ...this.ledger.verdict(), ...this.world.books()];
    await this.world.close();
    return faults;
  }
}
