/**
 * One fabric as one JS thread uses it: the native context, its sessions, the submission path, and the
 * dispatch of event batches to the sessions. contexts.ts opens it when it is first needed. Channels and
 * servers use it, on its JS thread.
 */

import type { MemoryLimits } from '../core/errors/failure.ts';
import { warnOfFault } from '../core/warnings.ts';
import * as limits from '../limits.ts';
import { Ev, EvKind, type NativeContext, type NativeOptions } from '../native/native.ts';
import { AnswerMemory } from './incoming/answer-memory.ts';
import { ReceiveMemory } from './incoming/receive-memory.ts';
import { Leases } from './leases.ts';
import { keyFromWords } from './outgoing/buffer-keys.ts';
import { Outgoing } from './outgoing/outgoing.ts';
import { Sessions } from './sessions.ts';
import { newTurn } from './time/deadlines.ts';
import { saveTrace } from './traces/session-traces.ts';
import { ResourceWaiters } from './waiting/resource-waiters.ts';
import { Shortage } from './waiting/shortage.ts';

export class FabricContext {
  readonly fabric: NativeOptions['fabric'];
  readonly native: NativeContext;
  readonly outgoing: Outgoing;
  readonly receiveMemory: ReceiveMemory;
  readonly answerMemory: AnswerMemory;
  readonly waiters: ResourceWaiters;
  readonly shortage: Shortage;
  /** The limits of memory, for error texts. */
  readonly memoryLimits: MemoryLimits;
  readonly sessions: Sessions;
  readonly leases: Leases;
  /** True when the device has been removed. The sessions then end, and no new user gets this context. */
  deviceGone = false;
  /**
   * Time at which the current batch of events arrived. The time is exact while the first event of the batch
   * is being handled (`firstOfBatch`). Later events wait for the handlers of earlier events.
   */
  batchMs = 0;
  firstOfBatch = false;
  /** Number of the batch, with 32 bits. */
  batch = 0;

  readonly #deviceListeners = new Set<() => void>();

  /** Folder for the traces of failed sessions; with an empty text, no trace is written. */
  readonly #traces: string;

  constructor(
    fabric: NativeOptions['fabric'],
    native: NativeContext,
    given: {
      readonly traceFolder?: string;
      readonly mrCacheBytes?: number;
      readonly stagingBytes?: number;
    } = {},
  ) {
    const { traceFolder = '', mrCacheBytes = limits.mrCacheBytes.default, stagingBytes } = given;
    this.fabric = fabric;
    this.memoryLimits = { arenaBytes: native.arenaBytes, mrCacheBytes, stagingBytes };
    this.#traces = traceFolder;
    this.native = native;
    this.outgoing = new Outgoing(native);
    this.receiveMemory = new ReceiveMemory(native);
    this.answerMemory = new AnswerMemory(native);
    this.waiters = new ResourceWaiters(native, () => this.outgoing.bulk.sending);
    this.shortage = new Shortage(native);
    this.sessions = new Sessions(fabric, native, this.outgoing);
    this.leases = new Leases(native, this.outgoing.bulk);
    native.onEvents((count) => this.#dispatch(count));
  }

  /**
   * True while a batch of events is being handled. The native context must not be closed during that time.
   */
  get dispatching(): boolean {
    return this.waiters.inTurn;
  }

  /**
   * Calls `listener` when the device is removed. An object that uses the context without a session must then
   * release it, because the kernel completes the removal only when the device is no longer open.
   */
  onDeviceGone(listener: () => void): void {
    this.#deviceListeners.add(listener);
  }

  offDeviceGone(listener: () => void): void {
    this.#deviceListeners.delete(listener);
  }

  /** Returns the resource that a message must wait for when it has just found no memory. */
  get lacking(): 'memory' | 'registration' {
    return this.outgoing.bulk.shortBytes === 0 ? 'registration' : 'memory';
  }

  /** Counts waiters and memory in use. All counts must be 0 again when no call is in flight. Tests use it. */
  get kept(): Readonly<Record<string, number>> {
    const { sending, registered } = this.outgoing.bulk.kept;
    return {
      sending,
      unheld: registered.filter((key) => !this.native.holdsBuffer(key)).length,
      ...this.waiters.kept,
      unowned: this.sessions.unowned,
    };
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
        // Only an error of this library arrives here, because the code that calls user code catches the
        // errors of user code. The error ends the session and leaves the process running.
        warnOfFault(error);
        if (this.sessions.ownerOf(session) !== undefined) this.native.closeSession(session, 'internal error');
      }
      this.firstOfBatch = false;
    }
    this.waiters.turnEnds();
  }

  #handle(kind: number, session: number, at: number, events: Int32Array): void {
    switch (kind) {
      case EvKind.request:
        this.sessions.ownerOf(session)?.onRequest(at);
        break;
      case EvKind.settled:
        this.sessions.ownerOf(session)?.onSettled(at);
        break;
      case EvKind.failed:
        this.sessions.ownerOf(session)?.onFailed(at);
        break;
      case EvKind.cancelled:
        this.sessions.ownerOf(session)?.onCancelled(at);
        break;
      case EvKind.partWaits:
        this.sessions.ownerOf(session)?.onPartWaits(at);
        break;
      case EvKind.released:
        this.sessions.ownerOf(session)?.onReleased(at);
        break;
      case EvKind.sent:
        this.outgoing.bulk.sent(events[at + Ev.token]!);
        this.waiters.memoryFree();
        break;
      case EvKind.sessionUp:
        this.sessions.up(session);
        break;
      case EvKind.sessionDown:
        if (this.#traces !== '') saveTrace(this.#traces, this.native, this.fabric, session);
        this.sessions.down(session, this.native.sessionError(session));
        break;
      case EvKind.slotsFree:
        this.waiters.slotsFree();
        break;
      case EvKind.memoryFree:
        this.waiters.memoryFree();
        break;
      case EvKind.memoryShort:
        this.shortage.warn();
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
}
