/**
 * The public interfaces of remote memory, which connectMemory() and memoryOf() return. The other files of
 * this folder have the classes that implement them.
 */
import type { HandlerContext } from '../core/handler-context.ts';
import type { RemoteMemory } from './gen/rdma_rpc/remote_memory.rdma.ts';

/** The rights of a peer to exposed memory. At least one right must be given. */
export interface ExposeOptions {
  /** The peer may read the memory. Default false. */
  read?: boolean;
  /** The peer may write the memory. Default false. */
  write?: boolean;
  /**
   * The peer may update the memory by `fetchAdd` and `compareAndSwap`. These are atomic against each other,
   * but not against code of this process. Default false.
   */
  atomic?: boolean;
  /**
   * After this number of milliseconds the rights end automatically. If the event loop of this process is
   * blocked, they end later. Default: they end with `close()` or the session.
   */
  expiresMs?: number;
  /**
   * Runs after each `writeWithImmediate` of the peer, when its bytes are in the memory. The peer names the
   * offset and the length, which are checked against the bounds. Needs the right `write`.
   */
  onWritten?: (written: Written) => void;
}

/** Describes a `writeWithImmediate` of the peer. */
export interface Written {
  readonly offset: number;
  readonly byteLength: number;
  /** The number that the peer has chosen, 0 to 2^32 - 1. */
  readonly immediate: number;
}

/** Memory of this side that the peer may use. */
export interface Exposure extends AsyncDisposable {
  /** Identifies the memory. Send it to the peer in a message field of the type `rdma_rpc.RemoteMemory`. */
  readonly handle: RemoteMemory;
  /**
   * The exposed bytes. For memory of `alloc` and for SharedArrayBuffers, they are a view of that memory.
   * Every other buffer was moved into this memory, and is detached.
   */
  readonly bytes: Uint8Array;
  /** True when the rights have ended. */
  readonly closed: boolean;
  /**
   * Resolves with the reason when the rights have ended. From then on the peer cannot read or write the
   * memory.
   */
  readonly ended: Promise<string>;
  /**
   * Revokes the rights, and resolves when they have ended. The peer may finish the operations that it has
   * begun. A peer that does not finish them within `revokeMs` loses the memory too. If it continues after
   * that, it also loses the queue pair.
   */
  close(): Promise<void>;
}

/** Memory of the peer. Operations on one queue pair take effect in the order of the calls. */
export interface Remote {
  readonly byteLength: number;
  readonly rights: { readonly read: boolean; readonly write: boolean; readonly atomic: boolean };
  /** True when the peer has revoked the memory, or the session has ended. */
  readonly closed: boolean;
  /**
   * Reads from `offset` (default 0) until `into` is full. Resolves when the bytes are in `into`. Rejects with
   * OUT_OF_RANGE when the memory is too small, with PERMISSION_DENIED when the right is missing, with
   * FAILED_PRECONDITION when the peer has revoked the memory, and with UNAVAILABLE when the session has
   * ended.
   */
  read(into: ArrayBufferView, offset?: number): Promise<void>;
  /**
   * Writes the bytes of `from` at `offset` (default 0). The bytes must not change meanwhile. Resolves when
   * they are in the peer's memory. Rejects with the errors of `read`; some of the bytes may then have been
   * written.
   */
  write(from: ArrayBufferView, offset?: number): Promise<void>;
  /**
   * Writes as `write` does, and then calls `onWritten` of the exposure with the 32-bit number `immediate`.
   */
  writeWithImmediate(from: ArrayBufferView, offset: number, immediate: number): Promise<void>;
  /**
   * Adds to the 64 bits at `offset`, a multiple of 8, and resolves with the previous value. Rejects with the
   * errors of `read`, and with UNIMPLEMENTED when the device has no atomics.
   */
  fetchAdd(offset: number, add: bigint): Promise<bigint>;
  /** Writes `swap` if the 64 bits at `offset` are equal to `compare`. Resolves with the previous value. */
  compareAndSwap(offset: number, compare: bigint, swap: bigint): Promise<bigint>;
}

/**
 * Memory for the operations of this side. Reads and writes between this memory and the peer's are not copied.
 */
export interface LocalMemory extends Disposable {
  readonly bytes: Uint8Array;
  /** Releases the memory. Operations in progress continue. */
  close(): void;
}

/** A handle of remote memory, as it arrives in a message. Any generated class of this message can be used. */
export type Handle = Pick<RemoteMemory, 'exposer' | 'id'>;

/** Remote memory between this side and one peer. It ends with the session. */
export interface PeerMemory extends Disposable {
  /**
   * Exposes a buffer, or the part of a buffer that a view shows, to the peer. Throws a RangeError for an
   * empty buffer, INVALID_ARGUMENT when no right is given, RESOURCE_EXHAUSTED when a limit is reached, and
   * UNAVAILABLE when this remote memory has ended.
   */
  expose(buffer: ArrayBuffer | SharedArrayBuffer | ArrayBufferView, options: ExposeOptions): Exposure;
  /**
   * Opens memory of the peer, which takes one round trip. Rejects with NOT_FOUND when the rights have ended,
   * and with INVALID_ARGUMENT for a handle of another connection.
   */
  open(handle: Handle): Promise<Remote>;
  /** Allocates registered memory that is filled with zeros. */
  alloc(byteLength: number): LocalMemory;
  readonly closed: boolean;
  /** Resolves with the reason when this remote memory has ended. */
  readonly ended: Promise<string>;
  /** Ends this remote memory and everything that is exposed through it. The session continues. */
  close(): void;
}

export interface MemoryOptions {
  /** Number of exposures to one peer at a time. Default 1024. */
  exposuresMax?: number;
  /** Milliseconds in which a peer must finish its operations when memory is revoked. Default 1000. */
  revokeMs?: number;
}

/** Remote memory of the clients of a server. */
export interface Memories {
  /**
   * Returns the remote memory of the client whose call a handler runs, or undefined when the client has not
   * called `connectMemory`.
   */
  of(context: HandlerContext): PeerMemory | undefined;
}
