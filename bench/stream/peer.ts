/**
 * The interface that the benchmark of streams requires of each framework. Each framework implements it in the
 * way that is fastest for it. `serve` runs in the server process, and `connect` runs in the client process.
 */

export interface StreamServer {
  close(): Promise<void>;
}

export interface StreamClient {
  /**
   * Returns memory for the items that are sent again and again. It is the kind of memory that the peer
   * prefers.
   */
  buffer(bytes: number): Uint8Array;
  /**
   * Reads items of a server stream and passes each to `onItem`, which returns true when it needs no more
   * items.
   */
  download(bytes: number, onItem: (payload: Uint8Array) => boolean): Promise<void>;
  /**
   * Sends items as fast as they are accepted, until `next` has no more. Resolves with the number of items
   * that the server has counted.
   */
  upload(next: () => Uint8Array | undefined): Promise<number>;
  /** Sends an item, waits for the same item to come back, and repeats this until `next` has no more. */
  chat(next: () => Uint8Array | undefined, onItem: (payload: Uint8Array) => void): Promise<void>;
  close(): Promise<void>;
}

export interface StreamPeer {
  readonly name: string;
  /** The transport of the bytes. */
  readonly fabric: string;
  serve(socket: string): Promise<StreamServer>;
  connect(socket: string): Promise<StreamClient>;
}
