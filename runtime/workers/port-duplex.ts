/**
 * A byte stream over a MessagePort. A worker gets it in place of the socket of the sideband connection, which
 * cannot leave the main thread. Each thread has one end of the stream, and the main thread's end is piped to
 * the socket. In each direction, only one chunk is in flight at a time. A peer that sends faster than the
 * worker reads therefore fills only its own socket. The stream carries control frames only; calls do not pass
 * through it.
 */
import { Duplex } from 'node:stream';
import type { MessagePort } from 'node:worker_threads';
import type { HandoffRefusals } from '../control/socket/handoff.ts';
import type { Verified } from '../core/peer.ts';

/** Addresses of the socket, for limits, logs and the choice of device. */
export interface SocketAddresses {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  readonly localAddress?: string | undefined;
  /**
   * The reason why the client cannot use fabrics that dial (handoff.ts). Only the main thread can hand over
   * their connections.
   */
  readonly handoffRefusals?: HandoffRefusals | undefined;
  /** The verified identity of the peer. */
  readonly verified?: Verified | undefined;
  /** The exported key of TLS (binding.ts). */
  readonly tlsSecret?: Uint8Array | undefined;
}

/** A chunk, or 'taken' (the last chunk has been taken), or 'end' (no more chunks follow). */
type Message = Uint8Array | 'taken' | 'end';

export class PortDuplex extends Duplex implements SocketAddresses {
  readonly remoteAddress: string | undefined;
  readonly remotePort: number | undefined;
  readonly localAddress: string | undefined;
  readonly handoffRefusals: HandoffRefusals | undefined;
  readonly verified: Verified;
  readonly tlsSecret: Uint8Array | undefined;
  readonly #port: MessagePort;
  /** The callback that is called when `taken` arrives. */
  #written: (() => void) | undefined;
  #owesTaken = false;
  #ended = false;

  constructor(port: MessagePort, from: SocketAddresses = {}) {
    super();
    const { remoteAddress, remotePort, localAddress, handoffRefusals, verified = {}, tlsSecret } = from;
    this.remoteAddress = remoteAddress;
    this.remotePort = remotePort;
    this.localAddress = localAddress;
    this.handoffRefusals = handoffRefusals;
    this.verified = verified;
    this.tlsSecret = tlsSecret;
    this.#port = port;
    port.on('message', (message: Message) => this.#take(message));
    // The port is closed when the other thread has destroyed its end of the stream, or has ended.
    port.on('close', () => {
      if (!this.#ended || this.readableEnded) this.destroy();
      else this.once('end', () => this.destroy());
    });
  }

  override _read(): void {
    if (!this.#owesTaken) return;
    this.#owesTaken = false;
    this.#port.postMessage('taken' satisfies Message);
  }

  override _write(chunk: Buffer, _: BufferEncoding, callback: () => void): void {
    this.#written = callback;
    // A copy is sent, because a chunk is often a view of a pool, which would be sent as a whole.
    this.#port.postMessage(new Uint8Array(chunk) satisfies Message);
  }

  override _final(callback: () => void): void {
    this.#port.postMessage('end' satisfies Message);
    callback();
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    this.#port.close();
    callback(error);
  }

  #take(message: Message): void {
    if (message === 'taken') {
      const written = this.#written;
      this.#written = undefined;
      written?.();
    } else if (message === 'end') {
      this.#ended = true;
      this.push(null);
    } else {
      this.#owesTaken = true;
      this.push(message);
    }
  }
}
