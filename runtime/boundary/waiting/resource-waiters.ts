/**
 * The queues that wait for a resource that a context has too little of. Each waiter is told once when there
 * may be some again, and asks anew when it finds none. Owned by a FabricContext, on its JS thread.
 *
 * Waiters take turns: each tries one thing and goes behind the others while it has more to try, and a waiter
 * that has found nothing comes before one that has found something the next time. So no session keeps another
 * one waiting.
 */
import { warnOfFault } from '../../core/warnings.ts';
import { Ctl, type NativeContext } from '../../native/native.ts';

/**
 * - `slot`: a send slot.
 * - `callSlot`: a call slot that the server has not let go of. The owner of the waiter knows when it has.
 * - `memory`: memory of the arena.
 * - `sent`: the same, where only messages that are being sent can bring some back.
 * - `registration`: a large buffer is being registered with the device.
 * - `turn`: the end of the batch of events that is being handled.
 */
export type Resource = 'slot' | 'callSlot' | 'memory' | 'sent' | 'registration' | 'turn';

export interface ResourceWaiter {
  /** Tries one thing. Returns true when that has worked and there is more to try. */
  retry(): boolean;
}

export class ResourceWaiters {
  readonly #native: Pick<NativeContext, 'control' | 'flush'>;
  readonly #isSending: () => boolean;
  #slot = new Set<ResourceWaiter>();
  /** For memory and for registrations: native code tells of both by one event. */
  #memory = new Set<ResourceWaiter>();
  /** Mostly channels for which calls have made room, which then send what waits in one go. */
  readonly #turn: ResourceWaiter[] = [];
  #inTurn = false;

  /** `isSending`: a large message is on its way, and its end will be told. */
  constructor(native: Pick<NativeContext, 'control' | 'flush'>, isSending: () => boolean) {
    this.#native = native;
    this.#isSending = isSending;
  }

  /** Waiters by what they wait for, for tests that count. */
  get kept(): { readonly slotWaiters: number; readonly memoryWaiters: number } {
    return { slotWaiters: this.#slot.size, memoryWaiters: this.#memory.size };
  }

  /** A batch of events is being handled. */
  get inTurn(): boolean {
    return this.#inTurn;
  }

  /** Calls `waiter.retry()` when there may be some. Returns false when that would be never. */
  wait(resource: Resource, waiter: ResourceWaiter): boolean {
    const { control } = this.#native;
    switch (resource) {
      case 'slot':
        this.#slot.add(waiter);
        control[Ctl.wantSlots] = 1;
        return true;
      case 'memory':
      case 'registration':
        this.#memory.add(waiter);
        control[Ctl.wantMemory] = 1;
        this.#native.flush();
        return true;
      case 'sent':
        if (!this.#isSending()) return false;
        this.#memory.add(waiter);
        return true;
      case 'turn':
        if (this.#inTurn) this.#turn.push(waiter);
        return this.#inTurn;
      case 'callSlot':
        return true;
    }
  }

  slotsFree(): void {
    const waiters = this.#slot;
    if (waiters.size === 0) return;
    this.#slot = new Set();
    this.#tellAll(waiters);
  }

  memoryFree(): void {
    const waiters = this.#memory;
    if (waiters.size === 0) return;
    this.#memory = new Set();
    this.#tellAll(waiters);
  }

  turnBegins(): void {
    this.#inTurn = true;
  }

  /** Those who ask while others are told are told, too. */
  turnEnds(): void {
    const waiters = this.#turn;
    if (waiters.length !== 0) {
      for (const waiter of waiters) this.#tell(waiter);
      waiters.length = 0;
    }
    this.#inTurn = false;
  }

  /** A set hands out what is added to it meanwhile: behind the others. */
  #tellAll(waiters: Set<ResourceWaiter>): void {
    for (const waiter of waiters) {
      waiters.delete(waiter);
      if (this.#tell(waiter)) waiters.add(waiter);
    }
  }

  #tell(waiter: ResourceWaiter): boolean {
    try {
      return waiter.retry();
    } catch (error) {
      warnOfFault(error);
      return false;
    }
  }
}
