/**
 * Tests texts of every length around each limit of the paths that a message can take: a slot, segments, bulk,
 * or parts of a stream. The texts have characters of one to four bytes, alone and after bytes. Versions of
 * Node differ in the room that their transcoder may be offered.
 */
import { rmSync } from 'node:fs';
import { createChannel, createClient, createServer } from 'rdma-rpc';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { shmSlotBytes, slotBytes } from '../../runtime/limits.ts';
import { TextsDefinition } from './gen/texts.rdma.ts';
import { fabricOf, placeOf, socketPath, type Way } from './world.ts';

const ways: readonly Way[] = ['shm over tcp', 'shm-fd', 'tcp'];
const characters = ['x', 'é', '漢', '😁'];

/** The message sizes at which the path changes. */
const pathBytes = [slotBytes.default, shmSlotBytes, 32 * 1024, 64 * 1024];
/** A writer counts three bytes for each character until it measures the text. */
const lengths = [
  ...[36, 127, 1024, 2726, 5461].flatMap((length) => [length - 1, length, length + 1]),
  ...pathBytes.flatMap((bytes) =>
    [1, 2, 3].flatMap((each) => [-40, -20, -3, 0, 3].map((more) => Math.floor(bytes / each) + more)),
  ),
  100_000,
];

const textOf = (length: number, each: string): string => each.repeat(Math.floor(length / each.length));

describe.each(ways)('%s', (way) => {
  const path = socketPath();
  const server = createServer(fabricOf(way)).add(TextsDefinition, {
    echo: (message) => message,
    talk: (messages) => messages,
  });
  let channel: ReturnType<typeof createChannel>;
  beforeAll(async () => {
    channel = createChannel(await server.listen(placeOf(way, path)), fabricOf(way));
  });
  afterAll(async () => {
    await channel.close();
    await server.shutdown({ graceMs: 0 });
    rmSync(path, { force: true });
  });

  test.each(characters)('requests and replies with texts of %s arrive', async (each) => {
    const { echo } = createClient(TextsDefinition, channel);
    for (const length of lengths) {
      const text = textOf(length, each);
      const reply = await echo({ text });
      expect(reply.text === text, `${length} characters`).toBe(true);
    }
  });

  test.each(characters)('texts of %s after bytes arrive', async (each) => {
    const { echo } = createClient(TextsDefinition, channel);
    for (const length of [40, 1023, 1024, 1366]) {
      const text = textOf(length, each);
      for (let bytes = 0; bytes < 36_000; bytes += 499) {
        const reply = await echo({ payload: new Uint8Array(bytes), text });
        expect(reply.text === text, `${length} characters behind ${bytes} bytes`).toBe(true);
      }
    }
  });

  test.each(characters)('stream messages with texts of %s arrive', async (each) => {
    const { talk } = createClient(TextsDefinition, channel);
    const texts = lengths.map((length) => textOf(length, each));
    let at = 0;
    for await (const { text } of talk(texts.map((text) => ({ text })))) {
      expect(text === texts[at], `${lengths[at]} characters`).toBe(true);
      at += 1;
    }
    expect(at).toBe(texts.length);
  });
});
