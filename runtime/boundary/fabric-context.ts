/**
 * One JS thread's use of one fabric: the native context, the sessions on it, the submission path, and the
 * dispatch of event batches to their sessions. Made when first needed (contexts.ts), used by channels and
 * servers, on its JS thread.
 */

import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import { BlockLease, type Lease } from '../core/lease.ts';
import { processWarning, warnOfFault } from '../core/warnings.ts';
import { fabrics } from '../fabrics.ts';
import { arenaBytes, aroundBytes, sealChunkBytes, sealTagBytes, sessionPlaces } from '../limits.ts';
import {
  Ev,
  EvKind,
  type NativeContext,
  type NativeOptions,
  type SessionOptions,
  Use,
} from '../native/native.ts';
import { AnswerMemory } from './incoming/answer-memory.ts';
import { ReceiveMemory } from './incoming/receive-memory.ts';
import { blockMemory } from './outgoing/block-stamps.ts';
import { keyFromWords } from './outgoing/buffer-keys.ts';
import { Outgoing } from './outgoing/outgoing.ts';
import type { Target } from './outgoing/submission.ts';
import { newTurn } from './time/deadlines.ts';
import { saveTrace } from './traces/session-traces.ts';
import { UnownedSessions } from './unowned-sessions.ts';
import { ResourceWaiters } from './waiting/resource-waiters.ts';

/** A client or server session. `at` is where the event's words start. None of these may throw. */
export interface SessionOwner {
  readonly target: Target;
  onRequest(at: number): void;
  onSettled(at: number): void;
  onFailed(at: number): void;
  onCancelled(at: number): void;
  onPartWaits(at: number): void;
  onReleased(at: number): void;
  /** The last event. The session's number is free from now on. */
  onDown(reason: string): void;
}

/** Where the server listens, as this host reaches it. */
export type Through = { readonly host: string; readonly port: number } | { readonly path: string };

const addressText = (address: Uint8Array): string => Buffer.from(address).toString('latin1');

export class FabricContext {
  readonly fabric: NativeOptions['fabric'];
  readonly native: NativeContext;
  readonly outgoing: Outgoing;
  readonly receiveMemory: ReceiveMemory;
  readonly answerMemory: AnswerMemory;
  readonly waiters: ResourceWaiters;
  /** The device has been removed: its sessions go down. Nobody gets this context any more. */
  deviceGone = false;
  /** Time at which the batch of events came in, and whether its first event is being handled, so that this is still the time. */
  batchMs = 0;
  firstOfBatch = false;
  /** Number of the batch, 32 bits. */
  batch = 0;

  /** By the low bits of their numbers, which are unique among the sessions alive. */
  readonly #sessions: (SessionOwner | undefined)[] = [];
  readonly #unowned = new UnownedSessions();
  #sessionCount = 0;
  /** Addresses of sessions of clients that are not connected yet, as texts. */
  readonly #dialling = new Map<number, string>();
  /** Sessions of servers whose client is in this context, too, where what a client sends is copied to the arena. */
  readonly #loops = new Set<number>();
  /** Method words that native code has been told about: at most one for each annotated method of the program. */
  readonly #expecting = new Set<number>();
  #warned = false;
  readonly #deviceListeners = new Set<() => void>();

  /** Where the last events of sessions that fail are written; empty: nowhere. */
  readonly #traces: string;

  constructor(fabric: NativeOptions['fabric'], native: NativeContext, traceFolder = '') {
    this.fabric = fabric;
    this.#traces = traceFolder;
    this.native = native;
    this.outgoing = new Outgoing(native);
    this.receiveMemory = new ReceiveMemory(native);
    this.answerMemory = new AnswerMemory(native);
    this.waiters = new ResourceWaiters(native, () => this.outgoing.bulk.sending);
    native.onEvents((count) => this.#dispatch(count));
  }

  /** A batch of events is being handled, so that native code must not be closed. */
  get dispatching(): boolean {
    return this.waiters.inTurn;
  }

  get sessionCount(): number {
    return this.#sessionCount;
  }

  /** Throws an RpcError that says which limit was hit. The session's events go to `attach`ed owner. */
  createSession(options: SessionOptions): number {
    try {
      return this.native.createSession(options);
    } catch (cause) {
      throw RpcError.from(cause, Status.RESOURCE_EXHAUSTED);
    }
  }

  /** Both ends of a session share this arena, and a message on its way is in it twice: what its sender has copied, and what its receiver has fetched. */
  get loops(): boolean {
    return this.#loops.size !== 0;
  }

  /** Of a client's session, for its server. */
  clientAddress(session: number): Uint8Array {
    const address = this.native.sessionAddress(session);
    if (this.native.capabilities.copiesLate) this.#dialling.set(session, addressText(address));
    return address;
  }

  /** A server's session with the client of that address. Returns '' or why they cannot be connected. */
  accept(session: number, peerAddress: Uint8Array, words?: Uint8Array): string {
    const why = this.native.connectSession(session, peerAddress, undefined, undefined, words);
    if (why === '' && this.#dialling.size !== 0) {
      const text = addressText(peerAddress);
      for (const each of this.#dialling.values()) if (each === text) this.#loops.add(session);
    }
    return why;
  }

  /** Resolves with '' when the session's queue pair is connected to the peer's, or with why it cannot be; the fabric has a time limit for it. `through`: for fabrics that dial by themselves; `words`: as native code takes them. */
  connect(session: number, peerAddress: Uint8Array, through?: Through, words?: Uint8Array): Promise<string> {
    this.#dialling.delete(session);
    const to = fabrics[this.fabric].dials === 'nothing' ? undefined : through;
    const [host, port] = to === undefined ? [] : 'path' in to ? [to.path] : [to.host, to.port];
    const why = this.native.connectSession(session, peerAddress, host, port, words);
    if (why !== '') return Promise.resolve(why);
    return this.#unowned.connected(session);
  }

  /** Calls `listener` when the queue pair of a server's session is connected to its client's, if it ever is. */
  onceUp(session: number, listener: () => void): void {
    this.#unowned.onceUp(session, listener);
  }

  attach(owner: SessionOwner): void {
    const { session } = owner.target;
    this.#sessions[session & sessionPlaces] = owner;
    ++this.#sessionCount;
    const lost = this.#unowned.take(session);
    if (lost !== undefined) setImmediate(() => this.#down(session, lost));
  }

  /** Ends a session that will get no owner. */
  discard(session: number, reason: string): void {
    this.#dialling.delete(session);
    this.#loops.delete(session);
    this.#unowned.take(session);
    this.native.closeSession(session, reason);
  }

  /** Calls `listener` when the device is removed: who holds the context without a session has to let it go, since the system waits for that. */
  onDeviceGone(listener: () => void): void {
    this.#deviceListeners.add(listener);
  }

  offDeviceGone(listener: () => void): void {
    this.#deviceListeners.delete(listener);
  }

  /** The session has an owner and is not down. */
  has(session: number): boolean {
    return this.#owner(session) !== undefined;
  }

  #owner(session: number): SessionOwner | undefined {
    const owner = this.#sessions[session & sessionPlaces];
    return owner !== undefined && owner.target.session === session ? owner : undefined;
  }

  /** Ends a session. Its calls fail, then `onDown` follows. What is staged is flushed first, so that native code knows every call. */
  closeSession(session: number, reason: string): void {
    this.outgoing.flush();
    this.native.closeSession(session, reason);
  }

  /** What the message waits for that has just found no memory. */
  get lacking(): 'memory' | 'registration' {
    return this.outgoing.bulk.shortBytes === 0 ? 'registration' : 'memory';
  }

  /**
   * What a call waits for that has found no room for so many bytes in the arena, and what to do. 0: for a
   * registration.
   */
  whyShort(bytes: number): string {
    if (bytes === 0) return 'it waited for a large buffer to be registered with the device';
    this.warnShort();
    const { arenaLeasedBlocks, arenaLeasedBytes } = this.native.stats();
    return (
      `it waited for ${bytes} bytes of the arena, of whose ${this.native.arenaBytes} bytes (arenaBytes) ${arenaLeasedBlocks} leases and ` +
      `messages on their way hold ${arenaLeasedBytes}; give large messages back with leaseOf(message)?.release() and leases of ` +
      'allocBuffer() with release(), or raise arenaBytes in configure()'
    );
  }

  /** Once: an application that keeps messages may not know that it does. */
  warnShort(): void {
    if (this.#warned) return;
    this.#warned = true;
    const { arenaLeasedBlocks, arenaLeasedBytes } = this.native.stats();
    processWarning(
      `calls wait for memory: ${arenaLeasedBlocks} leases and messages on their way hold ${arenaLeasedBytes} of the ` +
        `${this.native.arenaBytes} bytes of this thread's arena (arenaBytes). Large messages hold their memory until leaseOf(message)?.release() ` +
        'or until they are collected; release() them earlier, or raise arenaBytes in configure(). This is said once.',
    );
  }

  /** Who and what is kept: all of it comes back when calls are over. For tests that count. */
  get kept(): Readonly<Record<string, number>> {
    const { sending, registered } = this.outgoing.bulk.kept;
    return {
      sending,
      unheld: registered.filter((key) => !this.native.holdsBuffer(key)).length,
      ...this.waiters.kept,
      unowned: this.#unowned.size,
    };
  }

  allocBuffer(bytes: number): Lease {
    const seals = Math.ceil(bytes / sealChunkBytes) * sealTagBytes;
    const block = this.native.allocBlock(bytes + aroundBytes + seals, Use.application);
    if (block === 0) {
      const refusal = this.native.refusal();
      const text =
        refusal === ''
          ? `allocBuffer: no room for ${bytes} bytes in the arena; give leases back with release(), or raise arenaBytes (default ${arenaBytes.default}) in configure()`
          : `allocBuffer: no memory for ${bytes} bytes: ${refusal}`;
      throw new RpcError(Status.RESOURCE_EXHAUSTED, text, { processed: 'no' });
    }
    return new BlockLease(this.native, block, blockMemory(this.native, block), 0, bytes);
  }

  registerBuffer(buffer: ArrayBuffer): void {
    const why = this.outgoing.bulk.register(buffer);
    if (why !== '')
      throw new RpcError(Status.RESOURCE_EXHAUSTED, `registerBuffer: ${why}`, { processed: 'no' });
  }

  /**
   * Makes the first request of a method bring memory for its answer; from then on native code learns from the answers. `word` is the method word of what
   * brings it. Called for each call of a method whose definition has the option.
   */
  expectResponse(word: number, bytes: number): void {
    if (this.#expecting.has(word)) return;
    this.#expecting.add(word);
    this.native.expectResponse(word, Math.min(bytes, 0xffff_ffff));
  }

  /** The block behind a lease that is to receive the response of a call. Throws when it cannot. */
  blockOf(lease: BlockLease, path: string): number {
    const why = lease.released
      ? 'the lease was released before the call was sent'
      : 'the lease belongs to another fabric; get it with allocBuffer(bytes, channel)';
    if (lease.released || lease.native !== this.native)
      throw new RpcError(Status.FAILED_PRECONDITION, `${path}: into: ${why}`, { processed: 'no' });
    return lease.block;
  }

  #dispatch(count: number): void {
    const events = this.native.events;
    this.batchMs = this.native.clock[0]!;
    newTurn(this.batchMs);
    this.firstOfBatch = true;
    this.waiters.turnBegins();
    this.batch = (this.batch + 1) | 0;
    for (let at = 0, end = count * Ev.words; at < end; at += Ev.words) {
      const session = events[at + Ev.session]!;
      try {
        this.#handle(events[at + Ev.kind]!, session, at, events);
      } catch (error) {
        // Only a fault of this library comes here: user code is caught where it is called. It costs the session, not the process.
        warnOfFault(error);
        if (this.#owner(session) !== undefined) this.native.closeSession(session, 'internal error');
      }
      this.firstOfBatch = false;
    }
    this.waiters.turnEnds();
  }

  #handle(kind: number, session: number, at: number, events: Int32Array): void {
    switch (kind) {
      case EvKind.request:
        this.#owner(session)?.onRequest(at);
        break;
      case EvKind.settled:
        this.#owner(session)?.onSettled(at);
        break;
      case EvKind.failed:
        this.#owner(session)?.onFailed(at);
        break;
      case EvKind.cancelled:
        this.#owner(session)?.onCancelled(at);
        break;
      case EvKind.partWaits:
        this.#owner(session)?.onPartWaits(at);
        break;
      case EvKind.released:
        this.#owner(session)?.onReleased(at);
        break;
      case EvKind.sent:
        this.outgoing.bulk.sent(events[at + Ev.token]!);
        this.waiters.memoryFree();
        break;
      case EvKind.sessionUp:
        this.#unowned.up(session);
        break;
      case EvKind.sessionDown:
        if (this.#traces !== '') saveTrace(this.#traces, this.native, this.fabric, session);
        this.#down(session, this.native.sessionError(session));
        break;
      case EvKind.slotsFree:
        this.waiters.slotsFree();
        break;
      case EvKind.memoryFree:
        this.waiters.memoryFree();
        break;
      case EvKind.memoryShort:
        this.warnShort();
        break;
      case EvKind.deviceGone:
        this.deviceGone = true;
        for (const listener of [...this.#deviceListeners]) listener();
        break;
      case EvKind.evicted:
        this.outgoing.bulk.evicted(keyFromWords(events[at + Ev.keyLow]!, events[at + Ev.keyHigh]!));
        break;
    }
  }

  #down(session: number, reason: string): void {
    this.#loops.delete(session);
    this.#unowned.down(session, reason);
    const owner = this.#owner(session);
    if (owner === undefined) return;
    this.#sessions[session & sessionPlaces] = undefined;
    --this.#sessionCount;
    // First: whoever hears of the end may begin a call at once, and no event would end it here.
    owner.target.gone = true;
    owner.onDown(reason);
  }
}
