/**
 * Remote memory between this side and one peer: the queue pair, the memory that this side exposes through it,
 * and the memory that this side has opened through it. connect.ts (client) and accept.ts (server) create it,
 * and exchange the addresses over the sideband.
 *
 * | state      | event                      | reaction                                          |
 * |------------|----------------------------|---------------------------------------------------|
 * | connecting | the queue pairs connect    | the client sends `hello`                          |
 * | connecting | hello                      | the server answers it → open                      |
 * | open       | any message                | exposures and remotes handle it                   |
 * | any        | a fault, the session's end | ends the queue pair, operations and rights → over |
 */
import { randomBytes } from 'node:crypto';
import { controlText } from '../control/frames.ts';
import type { Joining, MemoryTerms } from '../control/handshake/memory-terms.ts';
import { Status } from '../core/errors/status.ts';
import { exposerBytes } from '../limits.ts';
import type { Registrable } from '../verbs/memory-region.ts';
import { type ExposedBytes, Exposures, type ExposuresOptions } from './exposures.ts';
import { lost, refusal } from './failures.ts';
import { memoryConnectMs } from './limits.ts';
import { Local } from './local.ts';
import type { ExposeOptions, Exposure, Handle, LocalMemory, PeerMemory, Remote } from './memory-type.ts';
import { MemoryQueue, type QueueOwner } from './queue.ts';
import { Remotes } from './remotes.ts';
import { Kind, type Message } from './wire.ts';

export interface LinkOptions extends ExposuresOptions {
  readonly role: 'client' | 'server';
  /** The quota of the peer's identity for exposed memory of this side. */
  readonly quota?: ExposedBytes | undefined;
}

export class MemoryLink implements PeerMemory, QueueOwner {
  readonly ended: Promise<string>;
  /** Identifies this side in handles. */
  readonly exposer: Uint8Array = randomBytes(exposerBytes);
  readonly number: number;
  readonly #role: LinkOptions['role'];
  readonly #queue: MemoryQueue;
  readonly #local: Local;
  readonly #exposures: Exposures;
  readonly #remotes: Remotes;
  #peer: Uint8Array | undefined;
  #end!: (reason: string) => void;
  #isOpen = false;
  #opened!: () => void;
  #failed!: (error: Error) => void;
  /** Resolves when both sides may use the queue pair. */
  readonly ready: Promise<void>;

  /** Makes the queue pair. Throws when the device refuses it. */
  constructor(terms: MemoryTerms, number: number, options: LinkOptions) {
    this.number = number;
    this.#role = options.role;
    this.#queue = new MemoryQueue(terms.device, options.role === 'client' ? 'connect' : 'accept', this);
    this.#local = new Local(this.#queue);
    this.#exposures = new Exposures(this.#queue, this.#local, this.exposer, options, options.quota);
    this.#remotes = new Remotes(this.#queue, this.#local);
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.ready = new Promise((resolve, reject) => {
      this.#opened = resolve;
      this.#failed = reject;
    });
    // The timer runs from here on, so that a peer that does not answer has a limit, too, and because the
    // timer keeps the process alive while a client waits.
    const late = setTimeout(
      () => this.end(`the queue pairs have not connected in ${memoryConnectMs} ms`),
      memoryConnectMs,
    );
    this.ready.catch(() => undefined).finally(() => clearTimeout(late));
  }

  get address(): Uint8Array {
    return this.#queue.address;
  }
  get isOpen(): boolean {
    return this.#isOpen && !this.closed;
  }
  get closed(): boolean {
    return this.#queue.ended !== undefined;
  }
  /** True while memory is exposed, or while operations are in progress. */
  get busy(): boolean {
    return this.#exposures.size > 0 || this.#queue.busy;
  }

  /**
   * Begins to connect the queue pair to the queue pair of the peer, which is called `exposer` in handles.
   * Returns whether that was possible.
   */
  join({ through, words }: Joining, address: Uint8Array, exposer: Uint8Array): boolean {
    this.#peer = exposer;
    const [host, port] =
      through === undefined ? [] : 'path' in through ? [through.path] : [through.host, through.port];
    this.#queue.join({ host, port, words }, address).then(
      () => {
        // On iWARP, the side that has started the connection must send first.
        if (this.#role === 'client') this.#queue.say({ kind: Kind.hello, id: 0 });
      },
      // The reason is not passed on, because it concerns files and processes of this machine, which the
      // client has named.
      (error: unknown) =>
        this.end(
          this.#role === 'server'
            ? 'the server cannot connect its queue pair to that of this client'
            : (error as Error).message,
        ),
    );
    return !this.#queue.isRefused;
  }

  expose(buffer: Registrable, options: ExposeOptions): Exposure {
    return this.#exposures.expose(buffer, options);
  }

  async open(handle: Handle): Promise<Remote> {
    const { exposer, id } = Object(handle) as Partial<Handle>;
    if (!(exposer instanceof Uint8Array) || typeof id !== 'number' || id >>> 0 !== id)
      throw new TypeError('open(handle): takes the handle of an exposure');
    const why = this.#whyForeign(exposer);
    if (why !== undefined) throw refusal(Status.INVALID_ARGUMENT, `open(handle): ${why}`);
    if (this.#queue.ended !== undefined)
      throw refusal(Status.UNAVAILABLE, `open(handle): remote memory: ${this.#queue.ended}`);
    return this.#remotes.open(id);
  }

  alloc(byteLength: number): LocalMemory {
    if (this.#queue.ended !== undefined)
      throw refusal(Status.UNAVAILABLE, `alloc: remote memory: ${this.#queue.ended}`);
    return this.#local.alloc(byteLength);
  }

  close(): void {
    this.end('it was closed');
  }
  [Symbol.dispose](): void {
    this.close();
  }
  end(reason: string): void {
    this.#queue.end(controlText(reason));
  }

  onMessage(message: Required<Message>): void {
    const why = this.#handle(message);
    if (why !== undefined) this.end(`the peer ${why}`);
  }

  onEnd(reason: string): void {
    this.#exposures.end(reason);
    this.#remotes.end(reason);
    this.#local.close();
    this.#queue.failAll(() => lost(reason));
    this.#failed(refusal(Status.UNAVAILABLE, `remote memory: ${reason}`));
    this.#end(reason);
  }

  #handle(message: Required<Message>): string | undefined {
    const { kind } = message;
    if (kind === Kind.hello) {
      if (this.#isOpen) return 'has sent a second hello';
      this.#isOpen = true;
      if (this.#role === 'server') this.#queue.say({ kind: Kind.hello, id: 0 });
      this.#opened();
      return undefined;
    }
    if (!this.#isOpen) return 'has sent a message before its hello';
    const isForExposures = kind === Kind.open || kind === Kind.revoked || kind === Kind.written;
    return isForExposures ? this.#exposures.onMessage(message) : this.#remotes.onMessage(message);
  }

  #whyForeign(exposer: Uint8Array): string | undefined {
    if (this.#peer !== undefined && Buffer.compare(exposer, this.#peer) === 0) return undefined;
    return Buffer.compare(exposer, this.exposer) === 0
      ? 'this side has exposed that memory; the peer opens it'
      : 'the memory was exposed on another connection, or the connection was made again; ask the peer for a new handle';
  }
}
