/**
 * The queues that wait for a scarce resource of a context. Each waiter is notified once when the resource may
 * be available, and must wait again when it finds too little of the resource. A FabricContext owns this
 * object and uses it on its JS thread.
 *
 * Waiters take turns. Each waiter tries one entry, and then goes behind the other waiters if it has more
 * entries to try. At the next notification, waiters whose entry could not be sent come before waiters whose
 * entry was sent. Therefore a session cannot starve another session.
 */
import { warnOfFault } from '../../core/warnings.ts';
import { Ctl, type NativeContext } from '../../native/native.ts';

/**
 * - `slot`: a send slot.
 * - `callSlot`: a call slot that is pending release at the server. The owner of the waiter notices the
 *   release.
 * - `memory`: memory of the arena.
 * - `sent`: arena memory that becomes free only when messages have been sent.
 * - `registration`: a large buffer is being registered with the device.
 * - `turn`: the end of the current batch of events.
 */
export type Resource = 'slot' | 'callSlot' | 'memory' | 'sent' | 'registration' | 'turn';

export interface ResourceWaiter {
  /** Tries one entry. Returns true when the entry could be sent and there are more entries to try. */
  retry(): boolean;
}

export class ResourceWaiters {
  readonly #native: Pick<NativeContext, 'control' | 'flush'>;
  readonly #isSending: () => boolean;
  #slot = new Set<ResourceWaiter>();
  /**
   * Waiters for memory and for registrations, which share a set because native code reports both by one
   * event.
   */
  #memory = new Set<ResourceWaiter>();
  /**
   * The waiters are mostly channels. Finished calls have made room for a channel's waiting calls, and the
   * channel then sends all of them together.
   */
  readonly #turn: ResourceWaiter[] = [];
  #inTurn = false;

  /** `isSending` returns whether a large message is being sent. An event will report its end. */
  constructor(native: Pick<NativeContext, 'control' | 'flush'>, isSending: () => boolean) {
    this.#native = native;
    this.#isSending = isSending;
  }

  /** Number of waiters by resource, for tests. */
  get kept(): { readonly slotWaiters: number; readonly memoryWaiters: number } {
    return { slotWaiters: this.#slot.size, memoryWaiters: this.#memory.size };
  }

  /** True while a batch of events is being handled. */
  get inTurn(): boolean {
    return this.#inTurn;
  }

  /**
   * Calls `waiter.retry()` when the resource may be available. Returns false when the resource would never be
   * available.
   */
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
    this.#notifyAll(waiters);
  }

  memoryFree(): void {
    const waiters = this.#memory;
    if (waiters.size === 0) return;
    this.#memory = new Set();
    this.#notifyAll(waiters);
  }

  turnBegins(): void {
    this.#inTurn = true;
  }

  /**
   * Notifies the waiters at the end of the batch, including waiters that are added during the notification.
   */
  turnEnds(): void {
    const waiters = this.#turn;
    if (waiters.length !== 0) {
      for (const waiter of waiters) this.#tell(waiter);
      waiters.length = 0;
    }
    this.#inTurn = false;
  }

  /** The iteration also visits waiters that are added during the iteration; they come last. */
  #notifyAll(waiters: Set<ResourceWaiter>): void {
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
