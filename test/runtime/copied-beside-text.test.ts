/**
 * Tests messages with a long text and a copied value, many at once while garbage is collected. The encoded
 * parts of such messages lie in blocks that the runtime knows only by number. No block may be freed before
 * its message is sent; otherwise a message would contain bytes of another one.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createClient } from 'rdma-rpc';
import { expect, test } from 'vitest';
import { runs } from '../extent.ts';
import { EchoDefinition, type EchoMessage } from './gen/echo.rdma.ts';
import { openPair } from './pair.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const isFilled = (bytes: Uint8Array, value: number): boolean => bytes.every((byte) => byte === value);

test.each(['shm', 'tcp'] as const)('over %s each call sends its own bytes', async (way) => {
  let wrong = 0;
  const echo = async (request: EchoMessage): Promise<EchoMessage> => {
    // This delay only gives other calls time to allocate and free blocks while the handler waits.
    await new Promise((resolve) => setTimeout(resolve, 3));
    if (!isFilled(request.payload, request.number & 255)) ++wrong;
    return request;
  };
  const pair = await openPair(way, (server) => server.add(EchoDefinition, { echo }));
  try {
    const client = createClient(EchoDefinition, pair.channel);
    let number = 0;
    const calls = runs(300);
    const worker = async (): Promise<void> => {
      while (number < calls) {
        const mine = ++number;
        const text = '\u4e2d'.repeat(20_000 + ((mine * 7919) % 30_000));
        const payload = new Uint8Array(16_384 + ((mine * 6_271) % 60_000)).fill(mine & 255);
        const answer = client.echo({ text, payload, number: mine });
        if (mine % 3 === 0) collect();
        const { text: sameText, payload: samePayload } = await answer;
        expect([sameText === text, samePayload.length]).toEqual([true, payload.length]);
        if (!isFilled(samePayload, mine & 255)) ++wrong;
      }
    };
    await Promise.all(Array.from({ length: 8 }, worker));
    expect(wrong).toBe(0);
  } finally {
    await pair.close();
  }
});
