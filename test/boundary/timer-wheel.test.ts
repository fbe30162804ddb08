/**
 * Tests the wheel in virtual time. No entry fires early, and each entry fires at most two ticks late, in any
 * mix of adds, removes and far deadlines.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TimerWheel } from '../../runtime/boundary/time/timer-wheel.ts';
import { wheelSlots, wheelTickMs } from '../../runtime/limits.ts';

const turnMs = wheelSlots * wheelTickMs;
const lateMs = 2 * wheelTickMs + 1;

/**
 * A wheel with its own clock. `advance` runs the wheel exactly at the times for which it asked to be woken.
 */
class World {
  now: number;
  wakeAt = Infinity;
  wakeUps = 0;
  readonly wheel: TimerWheel;
  readonly fired = new Map<number, number>();

  constructor(startMs = 1000) {
    this.now = startMs;
    this.wheel = new TimerWheel(startMs, (delayMs) => {
      this.wakeAt = this.now + delayMs;
    });
  }

  add(afterMs: number, token: number): number {
    return this.wheel.add(this.now + afterMs, this, token);
  }

  onDeadline(token: number): void {
    this.fired.set(token, this.now);
  }

  advance(ms: number): void {
    const end = this.now + ms;
    while (this.wakeAt <= end) {
      this.now = this.wakeAt;
      this.wakeAt = Infinity;
      ++this.wakeUps;
      this.wheel.run(this.now);
    }
    this.now = end;
    this.wheel.refresh(this.now);
  }
}

describe('a deadline', () => {
  test.each([1, 1.5, 2, 3, 10, 99.9, 1000, turnMs - 1, turnMs, turnMs + 1, 3 * turnMs + 7, 86_400_000])(
    'after %d ms fires then, not before',
    (afterMs) => {
      const world = new World();
      world.add(afterMs, 1);
      world.advance(afterMs - 0.5);
      expect(world.fired.size).toBe(0);
      world.advance(0.5 + lateMs);
      expect(world.fired.get(1)! - 1000).toBeGreaterThanOrEqual(afterMs);
      expect(world.wheel.count).toBe(0);
    },
  );

  test('larger than 2^31 ms is kept', () => {
    const world = new World();
    world.add(2 ** 33, 1);
    world.advance(10 * turnMs);
    expect(world.fired.size).toBe(0);
    expect(world.wheel.count).toBe(1);
  });

  test('that was removed does not fire', () => {
    const world = new World();
    const first = world.add(10, 1);
    world.add(10, 2);
    world.wheel.remove(first);
    world.advance(100);
    expect([...world.fired.keys()]).toEqual([2]);
  });

  test('removed by another that fires with it does not fire', () => {
    const world = new World();
    let other = -1;
    const fired: string[] = [];
    const wheel = world.wheel;
    other = wheel.add(world.now + 10, { onDeadline: () => fired.push('other') }, 0);
    wheel.add(
      world.now + 10,
      {
        onDeadline: () => {
          fired.push('remover');
          wheel.remove(other);
        },
      },
      0,
    );
    wheel.add(world.now + 50, { onDeadline: () => fired.push('later') }, 0);
    world.advance(100);
    expect(fired).toEqual(['remover', 'later']);
    expect(wheel.count).toBe(0);
  });

  test('added by a deadline that fires waits its own time', () => {
    const world = new World();
    const at: number[] = [];
    world.wheel.add(
      world.now + 10,
      { onDeadline: () => void world.wheel.add(world.now + 10, { onDeadline: () => at.push(world.now) }, 0) },
      0,
    );
    world.advance(100);
    expect(at).toHaveLength(1);
    expect(at[0]).toBeGreaterThanOrEqual(1020);
  });

  test('computed in a long turn from the time of its start moves by the length of the turn', () => {
    const world = new World();
    world.wheel.refresh(world.now);
    world.add(10, 1);
    // The application computes for half a second before its event-loop iteration ends.
    world.now += 500;
    world.wheel.endTurn(world.now);
    world.advance(9);
    expect(world.fired.size).toBe(0);
    world.advance(1 + lateMs);
    expect(world.fired.size).toBe(1);
  });
});

describe('entries that were added in a turn which proves to be long', () => {
  /**
   * Decides which of ten entries are removed. The entries that are added then reuse the memory of the removed
   * ones.
   */
  test.each<[string, (place: number) => boolean, number]>([
    ['the last one', (place) => place === 9, 0],
    ['the first one', (place) => place === 0, 0],
    ['the first one, whose memory another takes,', (place) => place === 0, 1],
    ['every other one, of which some memory is taken,', (place) => place % 2 === 0, 2],
    ['all', () => true, 0],
  ])('%s removed in it: the others fire once each, in their time', (_, gone, more) => {
    const world = new World();
    const { wheel } = world;
    wheel.refresh(world.now);
    const ids = Array.from({ length: 10 }, (_, place) => world.add(100, place));
    ids.forEach((id, place) => {
      if (gone(place)) wheel.remove(id);
    });
    for (let i = 0; i < more; ++i) world.add(100, 10 + i);
    world.now += 500;
    wheel.endTurn(world.now);
    for (let i = more; i < 21; ++i) world.add(1000, 10 + i);
    const kept = ids.flatMap((_, place) => (gone(place) ? [] : [place]));
    const expected = [...kept, ...Array.from({ length: 21 }, (_, i) => 10 + i)];
    const fired = (): number[] => [...world.fired.keys()].sort((a, b) => a - b);
    expect(wheel.count).toBe(expected.length);
    world.advance(99);
    expect(fired()).toEqual([]);
    world.advance(1 + lateMs);
    expect(fired()).toEqual(expected.slice(0, kept.length + more));
    world.advance(1000);
    expect([fired(), wheel.count]).toEqual([expected, 0]);
  });
});

describe('wake-ups', () => {
  test('an empty wheel requests no wake-up', () => {
    const world = new World();
    world.add(10, 1);
    world.advance(100);
    expect(world.wakeAt).toBe(Infinity);
  });

  test('a distant deadline costs one wake-up per turn of the wheel', () => {
    const world = new World();
    world.add(10 * turnMs, 1);
    world.advance(11 * turnMs);
    expect(world.fired.size).toBe(1);
    expect(world.wakeUps).toBeLessThanOrEqual(12);
  });

  test('calls that settle in time cost about one wake-up per time limit', () => {
    const world = new World();
    for (let i = 0; i < 10_000; ++i) {
      const id = world.add(1000, i);
      world.advance(1);
      world.wheel.remove(id);
    }
    expect(world.fired.size).toBe(0);
    expect(world.wakeUps).toBeLessThan(30);
  });
});

test('any mix keeps the promise (property)', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('add' as const), ms: fc.integer({ min: 1, max: 3 * turnMs }) }),
    fc.record({ kind: fc.constant('remove' as const), index: fc.nat(200) }),
    fc.record({ kind: fc.constant('advance' as const), ms: fc.integer({ min: 0, max: turnMs }) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const world = new World(123_456.789);
      const live = new Map<number, { id: number; dueMs: number }>();
      let token = 0;
      const check = (): void => {
        for (const [key, entry] of live) {
          const firedMs = world.fired.get(key);
          if (firedMs === undefined) {
            expect(world.now).toBeLessThan(entry.dueMs + lateMs);
            continue;
          }
          expect(firedMs).toBeGreaterThanOrEqual(entry.dueMs);
          expect(firedMs).toBeLessThanOrEqual(entry.dueMs + lateMs);
          live.delete(key);
        }
        expect(world.wheel.count).toBe(live.size);
      };
      for (const action of steps) {
        if (action.kind === 'add') {
          const id = world.add(action.ms, ++token);
          live.set(token, { id, dueMs: world.now + action.ms });
        } else if (action.kind === 'remove') {
          const key = [...live.keys()][action.index];
          if (key === undefined) continue;
          world.wheel.remove(live.get(key)!.id);
          live.delete(key);
        } else {
          world.advance(action.ms);
        }
        check();
      }
    }),
    { numRuns: 300, seed: 42 },
  );
});
