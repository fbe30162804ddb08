/**
 * Registered memory, and how memory of the application becomes registered. Memory that a device writes must
 * stay where it is. However, an application can take the memory of an ArrayBuffer away at any moment
 * (`transfer()`, a transfer list), and engines offer no way to prevent that. Therefore two kinds of memory
 * are registered. Memory of this library stays mapped even if its ArrayBuffer is detached or collected, and
 * SharedArrayBuffers cannot be transferred.
 */
import type { NativeVerbsDevice } from '../native/verbs-device.ts';
import { granted } from './errors.ts';
import { Resource } from './resource.ts';

/** A memory region (`struct ibv_mr`). See ibv_reg_mr(3). */
export interface MemoryRegion extends Disposable {
  readonly name: string;
  /**
   * The registered bytes. For an ArrayBuffer of `allocBuffer` and for a SharedArrayBuffer, they are a view of
   * that memory. Every other buffer was moved into this memory when it was registered.
   */
  readonly bytes: Uint8Array;
  readonly byteLength: number;
  /** Address of the first byte. A peer needs it, with `rkey`, to READ or WRITE the memory. */
  readonly addr: number;
  /** The local key. */
  readonly lkey: number;
  /** The key for peers. The value is 0 when the region was registered without rights for peers. */
  readonly rkey: number;
  readonly closed: boolean;
  /**
   * Ends the registration (ibv_dereg_mr(3)). If posted requests still use the region, it ends with the last
   * of them. Until then, peers keep their rights, too.
   */
  close(): void;
}

interface Registered {
  readonly number: number;
  readonly addr: number;
  readonly lkey: number;
  readonly rkey: number;
}

class OpenMemoryRegion extends Resource implements MemoryRegion {
  readonly bytes: Uint8Array;
  readonly byteLength: number;
  readonly #native: NativeVerbsDevice;
  readonly #registered: Registered;

  constructor(native: NativeVerbsDevice, device: string, registered: Registered, bytes: Uint8Array) {
    super(`memory region ${registered.lkey} of ${device}`);
    this.#native = native;
    this.#registered = registered;
    this.bytes = bytes;
    this.byteLength = bytes.byteLength;
  }

  get addr(): number {
    this.check();
    return this.#registered.addr;
  }
  get lkey(): number {
    this.check();
    return this.#registered.lkey;
  }
  get rkey(): number {
    this.check();
    return this.#registered.rkey;
  }
  protected override release(): void {
    this.#native.closeMr(this.#registered.number);
  }
}

/** Memory that can be registered: a whole buffer, or the part of a buffer that a view shows. */
export type Registrable = ArrayBuffer | SharedArrayBuffer | ArrayBufferView;

/**
 * This is the original `structuredClone`, because code of the application may replace the global function
 * later.
 */
const { structuredClone } = globalThis;

function bytesOf(buffer: Registrable): Uint8Array {
  if (buffer instanceof ArrayBuffer || buffer instanceof SharedArrayBuffer) return new Uint8Array(buffer);
  if (ArrayBuffer.isView(buffer)) return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
  throw new TypeError('regMr(buffer): takes an ArrayBuffer, a SharedArrayBuffer or a view of one');
}

/** Empties a buffer, as a transfer list does. Throws for a buffer whose memory other code relies on. */
function detach(buffer: ArrayBuffer): void {
  const why =
    'regMr(buffer): this memory cannot be moved, since others use it too (such as the pool that Node cuts small ' +
    'Buffers from, or a WebAssembly.Memory); copy it into a buffer of allocBuffer()';
  try {
    structuredClone(buffer, { transfer: [buffer] });
  } catch (cause) {
    throw new TypeError(why, { cause });
  }
  // Node 20 copies such memory instead of refusing.
  if (buffer.byteLength !== 0) throw new TypeError(why);
}

/** Registers the buffer. If other code could take its memory away, its bytes are moved first. */
export function register(
  native: NativeVerbsDevice,
  device: string,
  buffer: Registrable,
  access: number,
): MemoryRegion & Resource {
  const given = bytesOf(buffer);
  if (given.byteLength === 0) throw new RangeError('regMr(buffer): the buffer is empty, or was transferred');
  const stays = given.buffer instanceof SharedArrayBuffer || native.owns(given);
  const bytes = stays ? given : copyOf(native, given);
  const registered = granted('regMr', native.regMr(bytes, access));
  if (!stays) {
    try {
      detach(given.buffer as ArrayBuffer);
    } catch (error) {
      native.closeMr(registered.number);
      throw error;
    }
  }
  return new OpenMemoryRegion(native, device, registered, bytes);
}

/** Returns a view of new memory that has all bytes of the buffer, at the same offset. */
function copyOf(native: NativeVerbsDevice, given: Uint8Array): Uint8Array {
  const memory = granted('regMr', native.allocBuffer(given.buffer.byteLength));
  new Uint8Array(memory).set(new Uint8Array(given.buffer));
  return new Uint8Array(memory, given.byteOffset, given.byteLength);
}
