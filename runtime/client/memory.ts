/**
 * Registered memory for applications: buffers that large messages can be sent from and received into without
 * a copy.
 */

import { peekContext } from '../boundary/contexts.ts';
import type { FabricContext } from '../boundary/fabric-context.ts';
import type { Lease } from '../core/lease.ts';
import { fabricNames } from '../fabrics.ts';
import * as limits from '../limits.ts';
import { clientChannel } from './channel.ts';
import type { Channel } from './channel-type.ts';

function contextOf(what: string, channel: Channel | undefined): FabricContext {
  return channel === undefined
    ? peekContext({ fabric: fabricNames[0]! })
    : clientChannel(what, channel).context;
}

/**
 * `bytes` bytes of this thread's registered arena, for requests (`lease.bytes` as a `bytes` field) or
 * responses (option `into`). Not zeroed. Throws RESOURCE_EXHAUSTED when the arena is full. `channel`: whose
 * fabric and device to allocate for, shared memory by default; one that is not connected yet takes the fabric
 * it will try first.
 */
export function allocBuffer(bytes: number, channel?: Channel): Lease {
  if (!Number.isInteger(bytes) || bytes < 1 || bytes > limits.messageBytes.max) {
    throw new RangeError(`allocBuffer: ${bytes} is not a size from 1 to ${limits.messageBytes.max} bytes`);
  }
  return contextOf('allocBuffer', channel).leases.allocBuffer(bytes);
}

/**
 * Registers a buffer of the application now rather than in its first call. The registration is kept until it
 * is not used for a while (mrCacheIdleMs) or others need the room. Throws RESOURCE_EXHAUSTED naming the
 * limit.
 */
export function registerBuffer(buffer: ArrayBuffer | Uint8Array, channel?: Channel): void {
  const memory = buffer instanceof Uint8Array ? buffer.buffer : buffer;
  if (!(memory instanceof ArrayBuffer))
    throw new TypeError('registerBuffer: takes an ArrayBuffer or a view of one');
  if ((memory as { resizable?: boolean }).resizable === true)
    throw new TypeError(
      'registerBuffer: this memory can be resized, so it is copied in each call; take one of fixed size',
    );
  contextOf('registerBuffer', channel).leases.registerBuffer(memory);
}
