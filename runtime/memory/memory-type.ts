/**
 * The public interfaces of remote memory: what connectMemory() and memoryOf() give. The classes that
 * implement them are in the other files of this folder.
 */
import type { HandlerContext } from '../core/handler-context.ts';
import type { RemoteMemory } from './gen/rdma_rpc/remote_memory.rdma.ts';

/** What a peer may do with exposed memory. At least one right has to be given. */
export interface ExposeOptions {
  /** The peer may read it. Default false. */
  read?: boolean;
  /** The peer may write it. Default false. */
  write?: boolean;
  /**
   * The peer may update it by `fetchAdd` and `compareAndSwap`, which are atomic against each other and not
   * against code of this process. Default false.
   */
  atomic?: boolean;
  /**
   * After this number of milliseconds the rights end by themselves. A blocked event loop of this process
   * keeps them longer. Default: they end with `close()` or the session.
   */
  expiresMs?: number;
  /**
   * Called after each `writeWithImmediate` of the peer, when its bytes are in the memory. Offset and length
   * are what the peer says, checked against the bounds. Needs `write`.
   */
  onWritten?: (written: Written) => void;
}

/** A `writeWithImmediate` of the peer. */
export interface Written {
  readonly offset: number;
  readonly byteLength: number;
  /** The number that the peer has chosen, 0 to 2^32 - 1. */
  readonly immediate: number;
}

/** Memory of this side that the peer may use. */
export interface Exposure extends AsyncDisposable {
  /** For a field of the type `rdma_rpc.RemoteMemory` in a message to the peer. */
  readonly handle: RemoteMemory;
  /**
   * The exposed bytes. For memory of `alloc` and SharedArrayBuffers they are a view of it. Every other
   * buffer was moved into this memory and is detached.
   */
  readonly bytes: Uint8Array;
  /** True when the rights have ended. */
  readonly closed: boolean;
  /** Resolves with the reason when the rights have ended: from then on the peer moves no byte. */
  readonly ended: Promise<string>;
  /**
   * Takes the rights back, and resolves when they have ended. The peer may finish what it has begun; one that
   * does not within `revokeMs` loses the memory all the same, and with it the queue pair if it goes on.
   */
  close(): Promise<void>;
}

/** Memory of the peer. Its operations of one queue pair take effect in the order of the calls. */
export interface Remote {
  readonly byteLength: number;
  readonly rights: { readonly read: boolean; readonly write: boolean; readonly atomic: boolean };
  /** True when the peer has taken it back, or the session has ended. */
  readonly closed: boolean;
  /**
   * Reads from `offset` (default 0) until `into` is full. Resolves when the bytes are there. Rejects with
   * OUT_OF_RANGE or PERMISSION_DENIED when the memory is smaller or the right is missing, with
   * FAILED_PRECONDITION when the peer has taken it back, and with UNAVAILABLE when the session has ended.
   */
  read(into: ArrayBufferView, offset?: number): Promise<void>;
  /**
   * Writes the bytes of `from` at `offset` (default 0); they must not change meanwhile. Resolves when they
   * are in the peer's memory. Rejects as `read` does; some of the bytes may have been written then.
   */
  write(from: ArrayBufferView, offset?: number): Promise<void>;
  /** Writes likewise, and then calls `onWritten` of the exposure with the number `immediate` of 32 bits. */
  writeWithImmediate(from: ArrayBufferView, offset: number, immediate: number): Promise<void>;
  /**
   * Adds to the 64 bits at `offset`, a multiple of 8, and resolves with the value before. Rejects as `read`
   * does; UNIMPLEMENTED when the device has no atomics.
   */
  fetchAdd(offset: number, add: bigint): Promise<bigint>;
  /** Writes `swap` if the 64 bits at `offset` are equal to `compare`. Resolves with the value before. */
  compareAndSwap(offset: number, compare: bigint, swap: bigint): Promise<bigint>;
}

/** Memory for the operations of this side: reads and writes between it and the peer copy nothing. */
export interface LocalMemory extends Disposable {
  readonly bytes: Uint8Array;
  /** Operations that are under way go on. */
  close(): void;
}

/** A handle as it arrives in a message, in the class of any generated code. */
export type Handle = Pick<RemoteMemory, 'exposer' | 'id'>;

/** Remote memory between this side and one peer. Ends with the session. */
export interface PeerMemory extends Disposable {
  /**
   * Lets the peer use a buffer, or the part that a view shows. Throws a RangeError for an empty one,
   * INVALID_ARGUMENT without any right, RESOURCE_EXHAUSTED when a limit is reached, and UNAVAILABLE when this
   * memory has ended.
   */
  expose(buffer: ArrayBuffer | SharedArrayBuffer | ArrayBufferView, options: ExposeOptions): Exposure;
  /**
   * Opens memory of the peer; one round trip. Rejects with NOT_FOUND when the rights have ended, and with
   * INVALID_ARGUMENT for a handle of another connection.
   */
  open(handle: Handle): Promise<Remote>;
  /** Allocates registered memory, zeroed. */
  alloc(byteLength: number): LocalMemory;
  readonly closed: boolean;
  /** Resolves with the reason when it has ended. */
  readonly ended: Promise<string>;
  /** Ends it, with everything that is exposed through it. The session goes on. */
  close(): void;
}

export interface MemoryOptions {
  /** Number of exposures to one peer at a time. Default 1024. */
  exposuresMax?: number;
  /** Milliseconds that a peer has to finish its operations when memory is taken back. Default 1000. */
  revokeMs?: number;
}

/** Remote memory of the clients of a server. */
export interface Memories {
  /**
   * Returns that of the client whose call a handler runs; undefined when the client has not called
   * `connectMemory`.
   */
  of(context: HandlerContext): PeerMemory | undefined;
}
