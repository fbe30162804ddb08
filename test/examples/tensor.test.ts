/**
 * Tests the example of image tensors, run in one process over both fabrics. The tests compare addresses of
 * memory.
 */
import { expect, test } from 'vitest';
import { callVision } from '../../examples/tensor/calls.ts';
import { VisionDefinition } from '../../examples/tensor/gen/tensor.rdma.ts';
import { visionHandlers } from '../../examples/tensor/service.ts';
import { loadNative } from '../../runtime/native/native.ts';
import { openPair, pairWays } from '../runtime/pair.ts';

test.each(pairWays)(
  'over %s: pixels arrive in place, there and back, and those of a stream where the arena is not shared',
  async (way) => {
    const seen: boolean[] = [];
    const pointers: number[] = [];
    const { address } = loadNative();
    const handlers = visionHandlers((inPlace) => seen.push(inPlace));
    const pair = await openPair(way, (server) =>
      server.add(VisionDefinition, {
        ...handlers,
        normalize: (batch, context) => {
          pointers.push(address(batch.pixels.buffer as ArrayBuffer) + batch.pixels.byteOffset);
          return handlers.normalize(batch, context);
        },
      }),
    );
    // Over shm-fd the channel has memory to lease only while it is connected.
    await pair.channel.ready();
    try {
      const report = await callVision(pair.channel);
      expect(report.inPlace).toBe(true);
      expect(report.mean).toBeCloseTo(127.5, 3);
      expect(report.meanAfter).toBeCloseTo(0, 3);
      expect(report.labels).toEqual([0, 1, 4, 9, 16, 25, 36, 49]);
      expect(report.brightness).toEqual([0, 1, 2, 3]);
      // Over tcp, both ends share this arena, so a message that is being sent is in it twice. Therefore
      // streams keep messages outside of it.
      const streamed = way !== 'tcp';
      expect(seen).toEqual([true, streamed, streamed, streamed, streamed]);
      // Without native code, memory begins wherever V8 places it.
      if (way !== 'loopback') expect(pointers.map((pointer) => pointer % 64)).toEqual([0]);
    } finally {
      await pair.close();
    }
  },
);
