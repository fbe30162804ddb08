/**
 * Registered memory for applications. Large messages can be sent from such buffers and received into them
 * without a copy.
 */

import { isArrayBuffer, isUint8Array } from 'node:util/types';
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
 * Allocates `bytes` bytes of this thread's registered arena, for requests (`lease.bytes` as a `bytes` field)
 * or responses (option `into`). The memory is not zeroed. Throws RESOURCE_EXHAUSTED when the arena is full.
 * `channel` selects fabric and device; a channel that is not connected yet selects the fabric that it will
 * try first. Default: shared memory.
 */
export function allocBuffer(bytes: number, channel?: Channel): Lease {
  if (!Number.isInteger(bytes) || bytes < 1 || bytes > limits.messageBytes.max) {
    throw new RangeError(`allocBuffer: ${bytes} is not a size from 1 to ${limits.messageBytes.max} bytes`);
  }
  return contextOf('allocBuffer', channel).leases.allocBuffer(bytes);
}

/**
 * Registers a buffer of the application now instead of during the first call that uses it. The registration
 * ends when it is not used for a while (mrCacheIdleMs), or when other registrations need the room. Throws
 * RESOURCE_EXHAUSTED with the name of the limit.
 */
export function registerBuffer(buffer: ArrayBuffer | Uint8Array, channel?: Channel): void {
  const memory = isUint8Array(buffer) ? buffer.buffer : buffer;
  if (!isArrayBuffer(memory)) throw new TypeError('registerBuffer: takes an ArrayBuffer or a view of one');
  if ((memory as { resizable?: boolean }).resizable === true)
    throw new TypeError(
      'registerBuffer: this memory can be resized, so it is copied in each call; take one of fixed size',
    );
  contextOf('registerBuffer', channel).leases.registerBuffer(memory);
}
