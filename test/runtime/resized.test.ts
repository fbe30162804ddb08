/**
 * Tests buffers that the application resizes while a call uses them: they harm neither the process, nor the
 * session, nor other calls.
 */
import { createClient } from 'rdma-rpc';
import { describe, expect, test } from 'vitest';
import { defineService, method } from '../../runtime/msgpack/index.ts';
import { openPair, pairWays } from './pair.ts';

interface Blobs {
  blobs: Uint8Array[];
}
const service = defineService({ name: 'test.Resized', methods: { Echo: method<Blobs, Blobs>() } });
/** TypeScript declares these methods from ES2024 on. */
type Resizable = ArrayBuffer & { resize(bytes: number): void };
const Buffers = ArrayBuffer as unknown as new (
  bytes: number,
  options: { maxByteLength: number },
) => Resizable;

describe.each(pairWays)('over %s', (way) => {
  test.each([0, 70_000, 2_000_000])(
    'a buffer that is resized to %i bytes right after the call harms nothing',
    async (bytes) => {
      const pair = await openPair(way, (server) =>
        server.add(service, { Echo: (request: Blobs) => request }),
      );
      const client = createClient(service, pair.channel);
      await pair.channel.ready(); // The call is then encoded at once.
      const beside = new Uint8Array(100_000).fill(7);
      for (let i = 0; i < 10; i++) {
        const buffer = new Buffers(1_000_000, { maxByteLength: 2_000_000 });
        const value = new Uint8Array(buffer, 0, 1_000_000).fill(i + 1);
        const sent = value.slice();
        const call = client.Echo({ blobs: [value, beside] });
        const other = client.Echo({ blobs: [beside] });
        buffer.resize(bytes);
        const reply = await call;
        expect(reply.blobs.map((each, j) => Buffer.compare(each, j === 0 ? sent : beside))).toEqual([0, 0]);
        expect(Buffer.compare((await other).blobs[0]!, beside)).toBe(0);
      }
      await pair.close();
    },
  );
});
