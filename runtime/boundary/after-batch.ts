/**
 * Who is told when a batch of events has been handled: channels for which calls have made room, which then
 * send what waits, in one go. Owned by a FabricContext, on its JS thread.
 */

/** Somebody who found no send slot. */
export interface SlotWaiter {
  onSlotsFree(): void;
}

export class AfterBatch {
  readonly #waiters: SlotWaiter[] = [];

  add(waiter: SlotWaiter): void {
    this.#waiters.push(waiter);
  }

  /** Those who ask while others are told are told, too. */
  tell(): void {
    const waiters = this.#waiters;
    if (waiters.length === 0) return;
    for (const waiter of waiters) {
      try {
        waiter.onSlotsFree();
      } catch (error) {
        // Only a fault of this library comes here, and the others are to go on.
        process.emitWarning(error instanceof Error ? error : String(error), 'RdmaRpcInternalError');
      }
    }
    waiters.length = 0;
  }
}
