/**
 * Tests buffers of the application that are transferred while a call uses them. The call fails or sends the
 * right bytes. Nothing else in the process or on the connection is affected, no matter how soon the memory is
 * freed.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { MessageChannel } from 'node:worker_threads';
import { createClient, leaseOf, RpcError } from 'rdma-rpc';
import { describe, expect, test } from 'vitest';
import { openContexts } from '../../runtime/boundary/contexts.ts';
import { defineService, method } from '../../runtime/msgpack/index.ts';
import { until } from '../outcomes.ts';
import { EchoDefinition, EchoMessage } from './gen/echo.rdma.ts';
import { openPair, pairWays } from './pair.ts';

interface Blob {
  blob: Uint8Array;
}
const service = defineService({ name: 'test.Detached', methods: { Echo: method<Blob, Blob>() } });

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

// Node supports transfer() since version 21, but the engine of Node 20 hides it.
if (!('transfer' in ArrayBuffer.prototype)) setFlagsFromString('--harmony-rab-gsab-transfer');
const transfer = runInNewContext('ArrayBuffer.prototype.transfer') as (this: ArrayBuffer) => ArrayBuffer;

/**
 * Over shared memory, a client copies shorter requests before they can be transferred (`copiedRequestBytes`).
 */
const largeBytes = 4_500_000;

/** The ways of detaching a buffer. */
const ways: Readonly<Record<string, (buffer: ArrayBuffer) => unknown>> = {
  structuredClone: (buffer) => structuredClone(buffer, { transfer: [buffer] }),
  'a message port': (buffer) => {
    const { port1, port2 } = new MessageChannel();
    port1.postMessage(buffer, [buffer]);
    port1.close();
    port2.close();
  },
  'a byte stream': (buffer) => {
    new ReadableStream({
      type: 'bytes',
      start: (controller) => controller.enqueue(new Uint8Array(buffer)),
    });
  },
  'transfer()': (buffer) => transfer.call(buffer),
};
const cases = pairWays.flatMap((way) => Object.keys(ways).map((name) => [way, name] as const));

function filled(bytes: number, value: number): Uint8Array {
  return new Uint8Array(new ArrayBuffer(bytes)).fill(value);
}

/** Resolves to whether the bytes are right, or to why the call failed. */
async function outcome(call: Promise<Blob>, value: number): Promise<string> {
  try {
    const { blob } = await call;
    return Buffer.compare(blob, filled(largeBytes, value)) === 0 ? 'right' : 'wrong';
  } catch (error) {
    return error instanceof RpcError &&
      /transferred or detached|detached ArrayBuffer|the response cannot be encoded/.test(error.message)
      ? 'refused'
      : String(error);
  }
}

describe.each(cases)('over %s, by %s', (way, name) => {
  const detach = ways[name]!;
  // By then the fabric has copied the data: tcp and loopback have copied the message, and shm-fd has copied
  // the request into staging memory.
  const lends = way !== 'tcp' && way !== 'loopback';
  const lendsRequests = lends && way !== 'shm-fd';

  test('a request is right or fails', async () => {
    const pair = await openPair(way, (server) => server.add(service, { Echo: (request: Blob) => request }));
    const client = createClient(service, pair.channel);
    await pair.channel.ready();
    const seen = new Set<string>();
    for (let i = 0; i < 8; i++) {
      const request = filled(largeBytes, i);
      const others = [1, 2, 3].map((each) => outcome(client.Echo({ blob: filled(largeBytes, each) }), each));
      const call = outcome(client.Echo({ blob: request }), i);
      // At this moment some fabrics are reading the request, and others have not begun.
      if (i % 2 === 0) await new Promise((resolve) => setImmediate(resolve));
      detach(request.buffer as ArrayBuffer);
      collect();
      seen.add(await call);
      expect(await Promise.all(others)).toEqual(['right', 'right', 'right']);
    }
    expect([...seen].filter((each) => each !== 'right')).toEqual(lendsRequests ? ['refused'] : []);
    await pair.close();
  });

  test('a response is right or fails', async () => {
    let detaches = true;
    const pair = await openPair(way, (server) =>
      server.add(service, {
        Echo: ({ blob }: Blob) => {
          const answer = filled(largeBytes, blob[0]!);
          if (detaches) {
            queueMicrotask(() => {
              detach(answer.buffer as ArrayBuffer);
              collect();
            });
          }
          return { blob: answer };
        },
      }),
    );
    const client = createClient(service, pair.channel);
    const seen = new Set<string>();
    for (let i = 0; i < 8; i++) {
      detaches = i % 2 === 0;
      const result = await outcome(client.Echo({ blob: Uint8Array.of(i) }), i);
      if (!detaches) expect(result).toBe('right');
      seen.add(result);
    }
    expect([...seen].sort()).toEqual(lends ? ['refused', 'right'] : ['right']);
    await pair.close();
  });

  test('after a received message is transferred, later messages have memory of their own', async () => {
    const pair = await openPair(way, (server) => server.add(service, { Echo: (request: Blob) => request }));
    const client = createClient(service, pair.channel);
    for (let i = 0; i < 12; i++) {
      const reply = await client.Echo({ blob: filled(largeBytes, i) });
      expect(await outcome(Promise.resolve(reply), i)).toBe('right');
      if (i % 3 === 0) {
        try {
          detach(reply.blob.buffer as ArrayBuffer);
        } catch (error) {
          // Node refuses to transfer such memory to another thread.
          expect(String(error)).toMatch(/DataCloneError|could not be (cloned|transferred)|detach/i);
        }
      }
      if (i % 2 === 0) leaseOf(reply)?.release();
    }
    await pair.close();
  });
});

describe.each(pairWays)('a call that waits, over %s', (way) => {
  test.each([100, 20_000, 300_000])(
    'fails when its buffer of %i bytes is transferred before it is sent',
    async (bytes) => {
      const handled: number[] = [];
      const echo = (request: EchoMessage) => {
        handled.push(request.number);
        return request;
      };
      const pair = await openPair(way, (server) => server.add(EchoDefinition, { echo }));
      const client = createClient(EchoDefinition, pair.channel);
      const [payload, part] = [filled(bytes, 1), filled(bytes, 2)];
      // The channel is not connected yet.
      const calls = [client.echo({ number: 1, payload }), client.echo({ number: 2, parts: [part] })];
      const other = client.echo({ number: 3, payload: filled(bytes, 3), parts: [new Uint8Array(0)] });
      for (const { buffer } of [payload, part])
        structuredClone(buffer, { transfer: [buffer as ArrayBuffer] });
      for (const call of calls)
        await expect(call).rejects.toThrow(/transferred or detached|detached ArrayBuffer/);
      expect((await other).payload.length).toBe(bytes);
      expect(handled).toEqual([3]);
      await pair.close();
    },
  );

  // Up to V8 11, compiled code that has used a resizable view reads the old length of a detached view.
  test('fails, too, when the views of other calls were resizable', async () => {
    const handled: number[] = [];
    const echo = (request: EchoMessage) => {
      handled.push(request.payload.length);
      return { number: request.payload.length };
    };
    const pair = await openPair(way, (server) => server.add(EchoDefinition, { echo }));
    const client = createClient(EchoDefinition, pair.channel);
    const resizable = new (ArrayBuffer as new (bytes: number, options: object) => ArrayBuffer)(20, {
      maxByteLength: 40,
    });
    for (let i = 0; i < 20_000; i++) {
      EchoMessage.encode({ payload: i % 3 === 0 ? new Uint8Array(resizable) : filled(20, i) });
    }
    await pair.channel.ready();
    for (let i = 0; i < 200; i++) {
      const payload = filled(20_000, i);
      const { buffer } = payload;
      structuredClone(buffer, { transfer: [buffer as ArrayBuffer] });
      await expect(client.echo({ payload })).rejects.toThrow(/transferred or detached|detached ArrayBuffer/);
    }
    expect(handled).toEqual([]);
    await pair.close();
  });
});

describe('received memory that was transferred', () => {
  test.each(pairWays)(
    'is not reused while its new buffer lives, even after the channel has closed: %s',
    async (way) => {
      const pair = await openPair(way, (server) => server.add(service, { Echo: (request: Blob) => request }));
      const client = createClient(service, pair.channel);
      const kept: Uint8Array[] = [];
      for (let i = 0; i < 10; i++) {
        const reply = await client.Echo({ blob: filled(largeBytes, 100 + i) });
        const lease = leaseOf(reply);
        const { byteOffset, length } = reply.blob;
        const moved = transfer.call(reply.blob.buffer as ArrayBuffer);
        kept.push(new Uint8Array(moved, byteOffset, length));
        if (i % 2 === 0) lease?.release();
        if (i % 4 === 0) lease?.release();
      }
      for (let i = 0; i < 20; i++) {
        const reply = await client.Echo({ blob: filled(largeBytes, i) });
        leaseOf(reply)?.release();
      }
      for (const [i, bytes] of kept.entries())
        expect(Buffer.compare(bytes, filled(largeBytes, 100 + i))).toBe(0);
      await pair.close();
      collect();
      // Once the fabric is closed, the bytes are undefined, but it must be safe to read them.
      for (const bytes of kept) bytes.slice();
    },
  );

  test.each(pairWays)('is empty when its lease was released before: %s', async (way) => {
    const pair = await openPair(way, (server) => server.add(service, { Echo: (request: Blob) => request }));
    const reply = await createClient(service, pair.channel).Echo({ blob: filled(largeBytes, 1) });
    const buffer = reply.blob.buffer as ArrayBuffer;
    leaseOf(reply)?.release();
    expect(() => transfer.call(buffer)).toThrow(/detached/);
    await pair.close();
    await until(() => {
      collect(); // Frees buffers that other tests have transferred.
      return openContexts().length === 0;
    });
  });
});
