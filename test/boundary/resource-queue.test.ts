/**
 * Tests the queues of calls that wait for memory, slots or registrations. The tests check which calls are
 * retried when a resource is free, how often, and in which order. The tests also check that the sessions of a
 * context take turns, and that deadlines are kept even if one of the calls throws.
 */
import fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { deadlines, turnNow } from '../../runtime/boundary/time/deadlines.ts';
import { ResourceQueue } from '../../runtime/boundary/waiting/resource-queue.ts';
import { type Resource, ResourceWaiters } from '../../runtime/boundary/waiting/resource-waiters.ts';
import { wheelTickMs } from '../../runtime/limits.ts';
import { Ctl } from '../../runtime/native/native.ts';

const lateMs = 2 * wheelTickMs + 1;
const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
afterEach(() => {
  warned.mockClear();
});

/** Makes an arena with this number of free bytes, and entries that want to send messages of these sizes. */
class World {
  free = 0;
  attempts = 0;
  asked = 0;
  readonly sent: string[] = [];
  readonly late: string[] = [];
  readonly waiters = new ResourceWaiters(
    { control: new Int32Array(Math.max(...Object.values(Ctl)) + 1), flush: () => void ++this.asked },
    () => false,
  );
  readonly queue = this.session();

  session(): ResourceQueue<Sender> {
    return new ResourceQueue<Sender>({
      retry: (sender) => sender.retry(),
      onLate: ({ name }) => void this.late.push(name),
    });
  }
  give(bytes: number): void {
    this.free += bytes;
    this.waiters.memoryFree();
  }
}

class Sender {
  readonly name: string;
  waitsFor: Resource = 'memory';
  onTry: () => void = () => undefined;
  readonly #world: World;
  readonly #queue: ResourceQueue<Sender>;
  readonly #messages: number[];
  readonly #deadlineMs: number;

  constructor(
    world: World,
    name: string,
    messages: number[],
    { queue = world.queue, deadlineMs = 0, waitsFor = 'memory' as Resource } = {},
  ) {
    this.#world = world;
    this.#queue = queue;
    this.name = name;
    this.#messages = messages;
    this.#deadlineMs = deadlineMs;
    this.waitsFor = waitsFor;
    this.#send();
  }
  retry(): void {
    this.onTry();
    this.#send();
  }
  #send(): void {
    const world = this.#world;
    for (let bytes = this.#messages[0]; bytes !== undefined; bytes = this.#messages[0]) {
      ++world.attempts;
      if (this.waitsFor === 'registration' || bytes > world.free) {
        this.#queue.add(this, world.waiters, this.waitsFor, this.#deadlineMs);
        return;
      }
      this.#messages.shift();
      world.free -= bytes;
      world.sent.push(this.name);
      this.#queue.moved(this);
    }
  }
}

describe('memory that becomes free', () => {
  test('causes one attempt more than the number of calls that fit, however many wait', () => {
    const world = new World();
    for (let i = 0; i < 400; i++) new Sender(world, `${i}`, [1]);
    world.attempts = 0;
    world.give(1);
    expect(world.attempts).toBe(2);
    world.give(3);
    expect(world.attempts).toBe(2 + 4);
    expect(world.sent).toEqual(['0', '1', '2', '3']);
    expect(world.queue.size).toBe(396);
  });

  test('is requested again by the call that found none', () => {
    const world = new World();
    for (let i = 0; i < 3; i++) new Sender(world, `${i}`, [1]);
    world.asked = 0;
    world.give(1);
    expect(world.asked).toBe(1);
    world.give(2);
    expect(world.asked, 'nobody waits any more').toBe(1);
    expect(world.queue.size).toBe(0);
  });

  test('is assigned in order, so smaller messages do not starve a large one in front of them', () => {
    const world = new World();
    new Sender(world, 'large', [10]);
    new Sender(world, 'small', [1]);
    for (let i = 0; i < 9; i++) world.give(1);
    expect(world.sent).toEqual([]);
    world.give(2);
    expect(world.sent).toEqual(['large', 'small']);
  });

  test('is assigned in turn, so a session that has sent a message waits behind the others', () => {
    const world = new World();
    new Sender(world, 'a', [1, 1, 1]);
    new Sender(world, 'b', [1, 1]);
    for (let i = 0; i < 5; i++) world.give(1);
    expect(world.sent).toEqual(['a', 'b', 'a', 'b', 'a']);
  });

  test('is not assigned to a message whose buffer is being registered', () => {
    const world = new World();
    const first = new Sender(world, 'registers', [1], { waitsFor: 'registration' });
    new Sender(world, 'other', [1]);
    world.give(1);
    expect(world.sent).toEqual(['other']);
    first.waitsFor = 'memory';
    world.give(1);
    expect(world.sent).toEqual(['other', 'registers']);
  });

  test('is not waited for when it can only come from messages that are being sent, and there are none', () => {
    const world = new World();
    const sender = new Sender(world, 'a', [1], { waitsFor: 'sent' });
    expect(world.queue.size).toBe(0);
    expect(world.queue.add(sender, world.waiters, 'sent')).toBe(false);
  });

  test('is assigned to the sessions in turn, one message at a time, beginning with those that got nothing', () => {
    const world = new World();
    for (const name of ['a', 'b', 'c']) {
      const queue = world.session();
      for (let i = 0; i < 10; i++) new Sender(world, name, [1], { queue });
    }
    world.give(4);
    expect(world.sent.join('')).toBe('abca');
    world.give(4);
    expect(world.sent.join('')).toBe('abcabcab');
    world.give(1);
    expect(world.sent.join('')).toBe('abcabcabc');
  });

  test('reaches the other sessions when one lacks another resource', () => {
    const world = new World();
    const [one, other] = [world.session(), world.session()];
    new Sender(world, 'large', [100], { queue: one });
    for (let i = 0; i < 3; i++) new Sender(world, 'small', [1], { queue: other });
    world.give(3);
    expect(world.sent).toEqual(['small', 'small', 'small']);
  });
});

describe('the end of a wait', () => {
  test('of the first message lets the others try', () => {
    const world = new World();
    const large = new Sender(world, 'large', [10]);
    new Sender(world, 'small', [1]);
    world.give(1);
    expect(world.sent).toEqual([]);
    expect(world.queue.delete(large)).toBe(true);
    expect(world.queue.delete(large)).toBe(false);
    expect(world.sent).toEqual(['small']);
  });

  test('of any other message causes no attempt', () => {
    const world = new World();
    new Sender(world, 'large', [10]);
    const small = new Sender(world, 'small', [1]);
    world.attempts = 0;
    world.queue.delete(small);
    expect(world.attempts).toBe(0);
    expect(world.queue.size).toBe(1);
  });

  test('during an attempt, of that message and of others, leaves the rest in order', () => {
    const world = new World();
    const senders = Array.from({ length: 5 }, (_, i) => new Sender(world, `${i}`, [1]));
    senders[0]!.onTry = () => {
      world.queue.delete(senders[0]!);
      world.queue.delete(senders[2]!);
    };
    world.give(3);
    expect(world.sent).toEqual(['0', '1', '3']);
    expect(world.queue.size).toBe(1);
  });

  test('by the end of the session forgets all messages, with their deadlines', () => {
    const world = new World();
    const { count } = deadlines;
    const sender = new Sender(world, 'a', [1], { deadlineMs: turnNow() + 1000 });
    expect(world.queue.clear()).toEqual([sender]);
    world.give(5);
    expect(world.sent).toEqual([]);
    expect(deadlines.count).toBe(count);
  });

  test('at its deadline fails the message, and lets the others try', () => {
    const world = new World();
    new Sender(world, 'large', [10], { deadlineMs: turnNow() + 50 });
    new Sender(world, 'small', [1]);
    world.give(1);
    deadlines.run(deadlines.now + 40);
    expect(world.late).toEqual([]);
    deadlines.run(deadlines.now + 10 + lateMs);
    expect(world.late).toEqual(['large']);
    expect(world.sent).toEqual(['small']);
  });

  test('has the deadline of the first wait, however often the message is retried', () => {
    const world = new World();
    new Sender(world, 'large', [10], { deadlineMs: turnNow() + 50 });
    for (let i = 0; i < 5; i++) {
      deadlines.run(deadlines.now + 9);
      world.give(1);
    }
    deadlines.run(deadlines.now + 5 + lateMs);
    expect(world.late).toEqual(['large']);
  });
});

test('an exception in one message does not affect the others, and its deadline stays', () => {
  const world = new World();
  const [one, other] = [world.session(), world.session()];
  const faulty = new Sender(world, 'faulty', [1], { queue: one, deadlineMs: turnNow() + 50 });
  new Sender(world, 'behind', [1], { queue: one });
  new Sender(world, 'elsewhere', [1], { queue: other });
  faulty.onTry = () => {
    throw new Error('a fault of this library');
  };
  world.give(3);
  expect(world.sent).toEqual(['behind', 'elsewhere']);
  expect(warned).toHaveBeenCalledExactlyOnceWith(
    expect.objectContaining({ message: 'a fault of this library' }),
    'RdmaRpcInternalError',
  );
  deadlines.run(deadlines.now + 50 + lateMs);
  expect(world.late).toEqual(['faulty']);
});

const step = fc.oneof(
  fc.record({ do: fc.constant('give' as const), bytes: fc.integer({ min: 0, max: 8 }) }),
  fc.record({
    do: fc.constant('come' as const),
    session: fc.nat(3),
    bytes: fc.integer({ min: 1, max: 6 }),
    waitMs: fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined }),
    /** The function that an entry runs when it is tried. */
    mischief: fc.option(fc.constantFrom('throws', 'comes', 'ends another', 'goes round'), { nil: undefined }),
  }),
  fc.record({ do: fc.constant('end' as const), which: fc.nat(20) }),
  fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 30 }) }),
);

/** An entry in the model. */
interface Known {
  readonly sender: Sender;
  readonly queue: ResourceQueue<Sender>;
  readonly bytes: number;
  readonly endMs: number;
  ended: boolean;
  mischief: string | undefined;
  threw: boolean;
}

test('no call is lost, starves or outlasts its deadline, whatever the others do while they are retried', () => {
  const run = (steps: readonly (typeof step extends fc.Arbitrary<infer S> ? S : never)[]): void => {
    const world = new World();
    const sessions = Array.from({ length: 4 }, () => world.session());
    const all = new Map<string, Known>();
    const living = (): Known[] =>
      [...all.values()].filter(
        ({ sender: { name }, ended }) => !ended && !world.sent.includes(name) && !world.late.includes(name),
      );
    const end = (known: Known | undefined): void => {
      if (known === undefined) return;
      known.ended = true;
      expect(known.queue.delete(known.sender)).toBe(true);
    };
    const come = (session: number, bytes: number, waitMs: number | undefined, mischief?: string): void => {
      const queue = sessions[session]!;
      const name = `${all.size}`;
      // An entry that throws is not tried again, and ends at its deadline.
      const endMs = deadlines.now + (waitMs ?? (mischief === 'throws' ? 60 : Number.POSITIVE_INFINITY));
      const sender = new Sender(world, name, [bytes], {
        queue,
        deadlineMs: endMs === Number.POSITIVE_INFINITY ? 0 : endMs,
      });
      const known: Known = { sender, queue, bytes, endMs, ended: false, mischief, threw: false };
      all.set(name, known);
      sender.onTry = () => {
        const what = known.mischief;
        known.mischief = undefined;
        if (what === 'comes') come((session + 1) % 4, 1, undefined);
        if (what === 'ends another') end(living().find((other) => other !== known));
        if (what === 'goes round') for (const each of sessions) each.retryAll();
        if (what !== 'throws') return;
        known.threw = true;
        throw new Error('a fault of this library');
      };
    };
    for (const each of steps) {
      if (each.do === 'give') world.give(each.bytes);
      else if (each.do === 'come') come(each.session, each.bytes, each.waitMs, each.mischief);
      else if (each.do === 'end') end(living()[each.which]);
      else deadlines.run(deadlines.now + each.ms);
      for (const known of living()) {
        expect(known.endMs + lateMs, 'a deadline has been missed').toBeGreaterThan(deadlines.now);
        expect([...known.queue]).toContain(known.sender);
      }
      for (const name of world.late) expect(all.get(name)!.endMs).toBeLessThanOrEqual(deadlines.now);
      if (each.do !== 'give') continue;
      // The first entry of each session needs more memory than is free, so the queue tries every entry that
      // could be sent.
      for (const queue of sessions) {
        const first = living().find((known) => known.queue === queue);
        if (first?.threw !== true) expect(first?.bytes ?? Infinity).toBeGreaterThan(world.free);
      }
    }
    // When memory is free for all, all entries are sent except those that have thrown, which end at their
    // deadlines.
    world.give(10_000);
    world.give(0);
    expect(living().filter(({ threw }) => !threw)).toEqual([]);
    deadlines.run(deadlines.now + 60 + lateMs);
    expect(living()).toEqual([]);
    const ends = [...world.sent, ...world.late];
    expect(new Set(ends).size, 'each ends once').toBe(ends.length);
    expect(sessions.map(({ size }) => size)).toEqual([0, 0, 0, 0]);
  };
  fc.assert(fc.property(fc.array(step, { maxLength: 60 }), run), { seed: 38, numRuns: 500 });
});

test('sessions with equal demand get equal amounts, in whatever portions memory becomes free', () => {
  const gifts = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 40 });
  const run = (count: number, given: readonly number[]): void => {
    const world = new World();
    for (let session = 0; session < count; session++) {
      const queue = world.session();
      for (let i = 0; i < 300; i++) new Sender(world, `${session}`, [1], { queue });
    }
    for (const bytes of given) {
      world.give(bytes);
      const got = Array.from(
        { length: count },
        (_, session) => world.sent.filter((name) => name === `${session}`).length,
      );
      expect(Math.max(...got) - Math.min(...got)).toBeLessThanOrEqual(1);
    }
  };
  fc.assert(fc.property(fc.integer({ min: 1, max: 6 }), gifts, run), { seed: 38, numRuns: 100 });
});
