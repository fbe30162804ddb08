/**
 * The tests send messages through each receive slot of a session. JS reads these messages through windows
 * (runtime/native/words.ts, `receiveWindow`). The test sends more messages than there are slots, one after
 * the other and many at once, in both directions, with their metadata.
 */
import { createClient, Metadata } from 'rdma-rpc';
import { describe, expect, test } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { openWorld, type Way } from '../runtime/world.ts';

const ways: readonly Way[] = ['in process', 'shm over tcp', 'shm-fd', 'tcp'];

describe.each(ways)('%s', (way) => {
  test.each([
    ['one after the other', 1, 600],
    ['many at once', 200, 2000],
  ])('%s', async (_, atOnce, total) => {
    const world = await openWorld(way);
    try {
      const { behave, echo } = createClient(EchoDefinition, world.channel);
      let next = 0;
      const caller = async () => {
        while (next < total) {
          const number = next++;
          // The payload is longer than the context's own slots for short messages.
          const payload = new Uint8Array(300 + number).fill(number);
          const text = `${number}`.padStart(40 + (number % 40), '0');
          const metadata = new Metadata();
          metadata.set('x-number', text);
          let trailer: Metadata | undefined;
          const onTrailer = (given: Metadata) => {
            trailer = given;
          };
          const [reply] = await Promise.all([
            echo({ payload }),
            behave({ text: 'metadata', payload }, { metadata, onTrailer }),
          ]);
          expect(Buffer.compare(reply.payload, payload), `call ${number}`).toBe(0);
          expect(trailer?.get('x-number')).toBe(text);
        }
      };
      await Promise.all(Array.from({ length: atOnce }, caller));
    } finally {
      await world.close();
    }
  });
});
