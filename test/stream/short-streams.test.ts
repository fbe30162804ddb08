/**
 * Streams that wait for memory of the arena: who is tried when some comes free, how often, and in which
 * order.
 */
import { describe, expect, test } from 'vitest';
import { ShortStreams } from '../../runtime/stream/short-streams.ts';

/** An arena of so many free bytes, and streams that send messages of so many bytes each. */
class World {
  free = 0;
  readonly outgoing = { bulk: { shortBytes: 0 } };
  readonly sent: string[] = [];
  attempts = 0;
  asked = 0;
  readonly short = new ShortStreams<Stream>(this);

  awaitMemory(): boolean {
    ++this.asked;
    return true;
  }
  give(bytes: number): void {
    this.free += bytes;
    this.short.onSlotsFree();
  }
}

class Stream {
  registers = false;
  onTry = (): void => undefined;
  readonly #world: World;
  readonly #name: string;
  readonly #messages: number[];

  constructor(world: World, name: string, ...messages: number[]) {
    this.#world = world;
    this.#name = name;
    this.#messages = messages;
    this.#send();
  }
  onSlotsFree(): void {
    this.onTry();
    this.#send();
  }
  #send(): void {
    const world = this.#world;
    for (let bytes = this.#messages[0]; bytes !== undefined; bytes = this.#messages[0]) {
      ++world.attempts;
      world.outgoing.bulk.shortBytes = this.registers ? 0 : bytes;
      if (this.registers || bytes > world.free) {
        world.short.add(this);
        return;
      }
      this.#messages.shift();
      world.free -= bytes;
      world.sent.push(this.#name);
      world.short.sent(this);
    }
  }
}

describe('memory that comes free', () => {
  test('costs as many attempts as find room, and one more, however many streams wait', () => {
    const world = new World();
    for (let i = 0; i < 400; i++) new Stream(world, `${i}`, 1);
    world.attempts = 0;
    world.give(1);
    expect(world.attempts).toBe(2);
    world.give(3);
    expect(world.attempts).toBe(2 + 4);
    expect(world.sent).toEqual(['0', '1', '2', '3']);
    expect(world.short.size).toBe(396);
  });

  test('is asked for again by the stream that found none', () => {
    const world = new World();
    for (let i = 0; i < 3; i++) new Stream(world, `${i}`, 1);
    world.asked = 0;
    world.give(1);
    expect(world.asked).toBe(1);
    world.give(2);
    expect(world.asked, 'nobody waits any more').toBe(1);
    expect(world.short.size).toBe(0);
  });

  test('goes in order: a large message is not starved by smaller ones behind it', () => {
    const world = new World();
    new Stream(world, 'large', 10);
    new Stream(world, 'small', 1);
    for (let i = 0; i < 9; i++) world.give(1);
    expect(world.sent).toEqual([]);
    world.give(2);
    expect(world.sent).toEqual(['large', 'small']);
  });

  test('goes to each in turn: a stream that has sent a message waits behind the others', () => {
    const world = new World();
    new Stream(world, 'a', 1, 1, 1);
    new Stream(world, 'b', 1, 1);
    for (let i = 0; i < 5; i++) world.give(1);
    expect(world.sent).toEqual(['a', 'b', 'a', 'b', 'a']);
  });

  test('passes over a stream whose buffer is being registered', () => {
    const world = new World();
    const first = new Stream(world, 'registers', 1);
    first.registers = true;
    new Stream(world, 'other', 1);
    world.give(1);
    expect(world.sent).toEqual(['other']);
    first.registers = false;
    world.give(1);
    expect(world.sent).toEqual(['other', 'registers']);
  });
});

describe('the end', () => {
  test('of the stream at the head lets the others try', () => {
    const world = new World();
    const large = new Stream(world, 'large', 10);
    new Stream(world, 'small', 1);
    world.give(1);
    expect(world.sent).toEqual([]);
    world.short.leave(large);
    expect(world.sent).toEqual(['small']);
  });

  test('of any other stream tries nothing', () => {
    const world = new World();
    new Stream(world, 'large', 10);
    const small = new Stream(world, 'small', 1);
    world.attempts = 0;
    world.short.leave(small);
    expect(world.attempts).toBe(0);
    expect(world.short.size).toBe(1);
  });

  test('of streams while one is tried, and of that one, leaves the rest in order', () => {
    const world = new World();
    const streams = Array.from({ length: 5 }, (_, i) => new Stream(world, `${i}`, 1));
    streams[0]!.onTry = () => {
      world.short.leave(streams[0]!);
      world.short.leave(streams[2]!);
    };
    world.give(3);
    expect(world.sent).toEqual(['0', '1', '3']);
    expect(world.short.size).toBe(1);
  });

  test('of the session forgets all', () => {
    const world = new World();
    new Stream(world, 'a', 1);
    world.short.stop();
    world.give(5);
    expect(world.sent).toEqual([]);
  });
});
