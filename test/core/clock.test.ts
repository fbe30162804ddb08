/**
 * Tests that the clocks of TypeScript and of native code show the same time, even if a test framework had
 * replaced Node's clocks when the context opened.
 */
import { createClient } from 'rdma-rpc';
import { afterEach, expect, test, vi } from 'vitest';
import { openContexts } from '../../runtime/boundary/contexts.ts';
import { clockMs, wallMs } from '../../runtime/clock.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { openWorld, type Way, type World } from '../runtime/world.ts';

let world: World | undefined;
afterEach(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  await world?.close();
});

/** The effects of fake timers on the clocks of a process. */
const fakes: Readonly<Record<string, () => void>> = {
  'the real clocks': () => undefined,
  'fake timers': () => void vi.useFakeTimers({ toFake: ['performance', 'Date', 'hrtime'], now: 0 }),
  'a performance.now() that stands still': () => void vi.spyOn(performance, 'now').mockReturnValue(0),
};
// Each case uses a fabric for which this file has no open context yet.
const cases: readonly (readonly [Way, string])[] = [
  ['in process', 'the real clocks'],
  ['shm over unix', 'fake timers'],
  ['tcp', 'a performance.now() that stands still'],
];

test.each(cases)('%s, opened under %s, works', async (way, fake) => {
  fakes[fake]!();
  const readMs = clockMs();
  world = await openWorld(way);
  const client = createClient(EchoDefinition, world.channel);
  await client.echo({});
  vi.useRealTimers();
  vi.restoreAllMocks();
  const beforeMs = clockMs();
  expect(beforeMs).toBeGreaterThan(readMs);
  await client.echo({});
  const afterMs = clockMs();
  const fabric = way === 'in process' ? 'sim' : way === 'tcp' ? 'tcp' : 'shm';
  const context = openContexts().find((each) => each.fabric === fabric)!;
  // The time of a batch of events lies between the two readings. The origins may differ by the time that
  // reading both clocks takes.
  expect(context.batchMs).toBeGreaterThan(beforeMs - 1);
  expect(context.batchMs).toBeLessThan(afterMs + 1);
  // Time limits also use the right clock, so none of these calls times out.
  for (let number = 0; number < 20; ++number)
    expect(await client.echo({ number }, { timeoutMs: 60_000 })).toMatchObject({ number });
});

test('the wall clock is also the real one', () => {
  const realMs = Date.now();
  vi.useFakeTimers({ toFake: ['Date'], now: 0 });
  expect(wallMs()).toBeGreaterThanOrEqual(realMs);
});
