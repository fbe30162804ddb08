/**
 * Cancels, deadlines and lost connections at each step of each kind of call, on a simulated fabric whose every event is a step: a seed decides
 * what is called, what happens to it, when, and in which order things arrive. RDMA_RPC_SEEDS=5000 for more of them.
 */
import { createClient } from 'rdma-rpc';
import { expect, test } from 'vitest';
import { InteropDefinition } from '../interop/gen/interop.rdma.ts';
import { kindsOf } from './calls.ts';
import { handlersOf } from './handlers.ts';
import { type Entry, Ledger, type Misfortune } from './ledger.ts';
import { Pauses } from './pauses.ts';
import { Random } from './random.ts';
import { SteppedWorld } from './stepped.ts';

const seeds = Number(process.env['RDMA_RPC_SEEDS'] ?? 150);
const limits = { inflightMax: 4, streamsMax: 3 };
/** A call's time limit where it is to pass. */
const timeoutMs = 4;
/** The last step of a misfortune: in the middle of one call, and mostly beyond the end of another. */
const steps = [20, 60, 300];

interface Plan {
  readonly entry: Entry;
  readonly step: number;
  readonly giveUp: AbortController;
  startMs: number;
}

/** The clock moves on until the call's time is over; its timer fires in the next turn. */
function outlast(startMs: number): void {
  while (performance.now() < startMs + timeoutMs + 1);
}

/** Returns what broke a rule, and how the calls ended. */
async function life(seed: number): Promise<{ faults: string[]; ends: string[] }> {
  const random = new Random(seed);
  const ledger = new Ledger();
  const pauses = new Pauses();
  const world = await SteppedWorld.open(seed, limits, (server) =>
    server.add(InteropDefinition, handlersOf(ledger, pauses, random)),
  );
  const client = createClient(InteropDefinition, world.channel);
  const kinds = Object.entries(kindsOf(ledger, pauses, random));
  const plans: Plan[] = [];

  const start = (misfortune: Misfortune): void => {
    const [what, call] = random.pick(kinds);
    const entry = ledger.add(what);
    const plan = { entry, step: random.below(random.pick(steps)), giveUp: new AbortController(), startMs: 0 };
    plan.startMs = performance.now();
    entry.misfortune = misfortune;
    if (plan.step === 0) misfortunes[misfortune](plan);
    plans.push(plan);
    const limit = misfortune === 'deadline' ? { timeoutMs } : {};
    call(client, entry, { signal: plan.giveUp.signal, ...limit }).then(
      () => ledger.end(entry),
      (error: unknown) => ledger.end(entry, error),
    );
  };
  const misfortunes: Record<Misfortune, (plan: Plan) => void> = {
    none: () => undefined,
    cancel: ({ giveUp }) => giveUp.abort(),
    deadline: ({ startMs }) => outlast(startMs),
    loss: () => world.lose(),
  };

  for (let i = 1 + random.below(8); i > 0; --i) {
    start(random.chance(30) ? 'loss' : random.pick(['none', 'cancel', 'cancel', 'deadline']));
  }
  let step = 0;
  await world.run(
    () => ledger.open === 0,
    () => {
      ++step;
      pauses.tick();
      for (const plan of plans) if (plan.step === step) misfortunes[plan.entry.misfortune](plan);
    },
  );
  await world.run(
    () => pauses.empty,
    () => pauses.tick(),
  );
  await world.rest();
  const ends = ledger.entries.map(
    ({ what, misfortune, error }) => `${what}, ${misfortune}, ${error?.sent ?? 'OK'}`,
  );
  const faults = [...world.books().map((fault) => `after the calls: ${fault}`)];
  // Every call slot and credit is back: more calls than fit at once go through.
  for (let i = 0; i < 2 * limits.inflightMax; ++i) start('none');
  await world.run(
    () => ledger.open === 0,
    () => pauses.tick(),
  );
  await world.rest();
  faults.push(...ledger.verdict(), ...world.books());
  await world.close();
  return { faults, ends };
}

test(`${seeds} lives with misfortunes at every step`, { timeout: 1_000_000 }, async () => {
  const seen = new Set<string>();
  for (let seed = 1; seed <= seeds; ++seed) {
    const { faults, ends } = await life(seed);
    expect(faults, `seed ${seed}`).toEqual([]);
    for (const end of ends) seen.add(end);
  }
  // It was not all misfortune, and no misfortune came always too early or too late.
  for (const kind of ['unary', 'server stream', 'client stream', 'bidirectional']) {
    for (const misfortune of ['cancel', 'deadline']) {
      for (const end of ['OK', 'no', 'maybe']) expect(seen).toContain(`${kind}, ${misfortune}, ${end}`);
    }
    expect(seen).toContain(`${kind}, loss, maybe`);
  }
});
