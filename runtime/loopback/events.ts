/**
 * Events of a loopback context that JS has not received yet, and the words of native.ts into which they are
 * written. LoopbackContext uses this file on its JS thread.
 */
import { Ev, EvKind, receiveSlab, shortMessageSlots } from '../native/native.ts';

/** The memory of a message: none, a send slot, or a block whose reference passes to JS with the event. */
export interface Place {
  readonly slot: number;
  readonly metadataBytes: number;
  /** The number of the block, or 0 when the message lies in the slot, after the metadata. */
  readonly block: number;
  readonly aligned: boolean;
  readonly messageBytes: number;
}

export const noSlot = -1;
export const nowhere: Place = { slot: noSlot, metadataBytes: 0, block: 0, aligned: false, messageBytes: 0 };

export interface LoopbackEvent {
  /** The kind of the event, or 0 when the event was removed before JS received it. */
  kind: number;
  readonly session: number;
  /** The call slot, the handle, the token, or the low word of a key, depending on the kind. */
  readonly call: number;
  /** The method, the status, `held`, or the high word of a key, depending on the kind. */
  readonly method: number;
  readonly place: Place;
  /**
   * The remaining time, the reason, or the bytes that did not fit the reply buffer, depending on the kind.
   */
  readonly time: number;
  /** `processed`, or whether the event is a part of a stream, depending on the kind. */
  readonly processed: number;
}

/** Returns an event in which all other properties are empty. */
export function eventOf(
  kind: number,
  session: number,
  rest: Partial<Omit<LoopbackEvent, 'kind' | 'session'>> = {},
): LoopbackEvent {
  return { kind, session, call: 0, method: 0, place: nowhere, time: 0, processed: 0, ...rest };
}

/** Returns the event for the end of a call without an answer. */
export function failedEvent(session: number, call: number, reason: number, processed: number): LoopbackEvent {
  return eventOf(EvKind.failed, session, { call, time: reason, processed });
}

/**
 * Writes the words of an event at `at`. `slotAt` is the position of the event's payload. A receiver reads the
 * message from the sender's slot, which is free once the batch has been handled.
 */
export function writeEvent(words: Int32Array, at: number, event: LoopbackEvent, slotAt: number): void {
  const { slot, metadataBytes, block, aligned, messageBytes } = event.place;
  words[at + Ev.kind] = event.kind;
  words[at + Ev.session] = event.session;
  words[at + Ev.call] = event.call;
  words[at + Ev.method] = event.method;
  words[at + Ev.region] = block === 0 ? receiveSlab : block;
  words[at + Ev.offset] = block === 0 ? slotAt : Number(aligned);
  words[at + Ev.metadataBytes] = metadataBytes;
  words[at + Ev.messageBytes] = messageBytes;
  words[at + Ev.timeoutUs] = event.time;
  words[at + Ev.metadataOffset] = slotAt;
  words[at + Ev.processed] = event.processed;
  words[at + Ev.receiveSlot] = slot === noSlot ? 0 : shortMessageSlots + 1 + slot;
}
