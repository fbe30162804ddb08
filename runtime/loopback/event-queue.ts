/**
 * The events of a loopback context that JS has not received yet. JS receives them in batches. Each batch has
 * a separate event-loop iteration, so that timers and sockets are served in between. LoopbackContext uses
 * this file on its JS thread.
 */
import { setImmediate } from 'node:timers';
import { clockMs } from '../clock.ts';
import { inRoot } from '../core/scopes.ts';
import { Ctl, Ev } from '../native/native.ts';
import { type LoopbackEvent, writeEvent } from './events.ts';
import type { SendSlots } from './send-slots.ts';

/** Maximum number of events in a batch. */
const batchMax = 256;

/** The owner of the queue, which is notified of each event. */
export interface QueueOwner {
  /**
   * Runs when JS is about to get the event. Returns false for an event that has become meaningless, so that
   * JS does not receive it.
   */
  onDelivery(event: LoopbackEvent): boolean;
  /** Runs when JS has handled the event. */
  onHandled(event: LoopbackEvent): void;
  /** Runs when JS has handled the batch. */
  onBatch(): void;
}

export class EventQueue {
  readonly words = new Int32Array(batchMax * Ev.words);
  readonly clock = new Float64Array(1);
  /** Passes `count` events to JS. */
  callback: ((count: number) => void) | undefined;
  batches = 0;

  readonly #control: Int32Array;
  readonly #slots: SendSlots;
  readonly #owner: QueueOwner;
  #waiting: LoopbackEvent[] = [];
  #scheduled = false;
  #closed = false;

  constructor(control: Int32Array, slots: SendSlots, owner: QueueOwner) {
    this.#control = control;
    this.#slots = slots;
    this.#owner = owner;
    this.clock[0] = clockMs();
  }

  emit(event: LoopbackEvent): void {
    this.#waiting.push(event);
    this.#schedule();
  }

  close(): void {
    this.#closed = true;
    this.callback = undefined;
    this.#waiting = [];
  }

  /** Schedules a batch, which runs in the root context, because it has events of many callers. */
  #schedule(): void {
    if (this.#scheduled || this.#closed) return;
    this.#scheduled = true;
    inRoot(setImmediate, undefined, this.#deliver);
  }

  readonly #deliver = (): void => {
    this.#scheduled = false;
    if (this.#closed) return;
    // Events of kind 0 are left out, because they were removed.
    const batch = this.#waiting
      .splice(0, batchMax)
      .filter((event) => event.kind !== 0 && this.#owner.onDelivery(event));
    if (batch.length > 0) this.#enter(batch);
    if (this.#waiting.length > 0) this.#schedule();
  };

  #enter(batch: readonly LoopbackEvent[]): void {
    for (const [index, event] of batch.entries()) {
      writeEvent(this.words, index * Ev.words, event, this.#slots.payloadOf(event.place.slot));
    }
    ++this.batches;
    this.clock[0] = clockMs();
    this.#control[Ctl.inCallback] = 1;
    this.callback?.(batch.length);
    this.#control[Ctl.inCallback] = 0;
    for (const event of batch) {
      this.#slots.release(event.place.slot);
      this.#owner.onHandled(event);
    }
    this.#owner.onBatch();
  }
}
