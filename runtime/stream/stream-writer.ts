/**
 * One direction of a stream, sending: packs small messages into parts and sends a part when it is full or the
 * turn ends, as far as there are credits. Both ends of a stream have one; it knows neither of them. On the JS
 * thread of its session.
 */

import { packedBytes } from '../boundary/outgoing/plain-types.ts';
import type { Target } from '../boundary/outgoing/submission.ts';
import { encodeMeasured } from '../codec/measured.ts';
import { Writer } from '../codec/memory/writer.ts';
import type { MessageType } from '../codec/types.ts';
import { type Lengths, lengthsOf } from '../core/lengths.ts';
import { streamPackedBytes } from '../limits.ts';
import { PartFlag, packedLengthBytes, partHeaderBytes } from './part-header.ts';
import { atTurnEnd } from './turn-end.ts';

/** Who sends the parts. */
export interface PartPort {
  /**
   * Sends part `sequence` if there is a credit for it; false: nothing has happened, `onCredit()` of the
   * writer is called when that may have changed. Throws when the message cannot be encoded.
   */
  sendPart(
    sequence: number,
    count: number,
    flags: number,
    type: MessageType<unknown, unknown>,
    message: unknown,
  ): boolean;
  /** The first message comes, and may be preceded: `lead()`. */
  onFirstMessage?(): void;
  /** `write` returned false, and now there is room again. */
  onWritable(): void;
  /** The part with the flag `last` has been sent. */
  onLastSent(): void;
  /** A message that `write` had accepted cannot be sent. Nothing follows it. */
  onWriteFault(error: unknown): void;
}

const nothing = new Uint8Array(0);
const writer = new Writer();

/** What a part of several messages may have: they count as one where the peer looks at sizes. */
export function packedCapacity({ eagerBytes, messageMaxBytes }: Target): number {
  return Math.min(Math.min(eagerBytes, streamPackedBytes) - partHeaderBytes, messageMaxBytes);
}

export class StreamWriter {
  readonly #type: MessageType<unknown, unknown>;
  readonly #capacity: number;
  readonly #port: PartPort;
  #sequence = 0;
  /** Packed messages of the next part. */
  #pack: Uint8Array = nothing;
  #packed = 0;
  #count = 0;
  /** A message that found no room. */
  #held: unknown;
  #holds = false;
  #lengths: Lengths | undefined;
  #atTurnEnd = false;
  /** The first message has come. */
  #begun = false;
  /** An empty part is still to go first. */
  #leads = false;
  #ending = false;
  #done = false;

  /** `capacity`: bytes that a packed part may have. */
  constructor(type: MessageType<unknown, unknown>, capacity: number, port: PartPort) {
    this.#type = type;
    this.#capacity = capacity;
    this.#port = port;
  }

  /**
   * Takes a message. False: no more until `onWritable`. Throws what its encoder throws; the message is then
   * not part of the stream.
   */
  write(message: unknown): boolean {
    if (!this.#begun) {
      this.#begun = true;
      this.#port.onFirstMessage?.();
    }
    if (this.#put(message)) return true;
    this.#held = message;
    this.#holds = true;
    this.#lengths = lengthsOf(this.#type, message);
    return false;
  }

  /**
   * An empty part goes ahead of the first message: it has something else to carry. No effect behind the first
   * part.
   */
  lead(): void {
    if (this.#done || this.#sequence !== 0) return;
    this.#leads = true;
    this.#sendLead();
  }

  /**
   * The part that `sendPart` was asked to send has gone without its message, which comes with the next one.
   */
  skip(): void {
    this.#sequence = (this.#sequence + 1) >>> 0;
  }

  /** Half-close: what has been written goes out, and `last` with it. */
  end(): void {
    if (this.#done) return;
    this.#ending = true;
    if (!this.#holds) this.#send();
  }

  /** Forgets everything: the stream is over. */
  stop(): void {
    this.#done = true;
    this.#held = undefined;
    this.#lengths = undefined;
    this.#holds = false;
    this.#pack = nothing;
    this.#count = 0;
  }

  /** There may be a credit. */
  onCredit(): void {
    if (this.#done || !this.#sendLead()) return;
    if (this.#holds) {
      try {
        this.#lengths?.check();
        if (!this.#put(this.#held)) return;
      } catch (error) {
        this.stop();
        this.#port.onWriteFault(error);
        return;
      }
      this.#held = undefined;
      this.#lengths = undefined;
      this.#holds = false;
      if (!this.#ending) {
        this.#port.onWritable();
        return;
      }
    }
    if (this.#ending || (this.#count !== 0 && !this.#atTurnEnd)) this.#send();
  }

  onTurnEnd(): void {
    this.#atTurnEnd = false;
    if (this.#count !== 0 && !this.#done) this.#send();
  }

  #put(message: unknown): boolean {
    writer.reset(this.#pack);
    const bytes = packedLengthBytes + this.#type.bound(message, writer);
    if (bytes > this.#capacity || writer.planned !== 0) return this.#putAlone(message);
    if (this.#packed + bytes > this.#capacity && !this.#send()) return false;
    if (this.#pack === nothing) {
      this.#pack = new Uint8Array(this.#capacity);
      writer.reset(this.#pack);
    }
    const at = this.#packed + packedLengthBytes;
    const end = encodeMeasured(this.#type, message, writer, at);
    this.#pack[at - 2] = end - at;
    this.#pack[at - 1] = (end - at) >>> 8;
    this.#packed = end;
    ++this.#count;
    if (!this.#atTurnEnd) {
      this.#atTurnEnd = true;
      atTurnEnd(this);
    }
    return true;
  }

  #putAlone(message: unknown): boolean {
    if (!this.#sendLead() || (this.#count !== 0 && !this.#send())) return false;
    if (!this.#port.sendPart(this.#sequence, 1, 0, this.#type, message)) return false;
    this.#sequence = (this.#sequence + 1) >>> 0;
    return true;
  }

  /** False: there is no credit for the part that must go first. */
  #sendLead(): boolean {
    if (!this.#leads) return true;
    if (!this.#port.sendPart(0, 0, 0, packedBytes, nothing)) return false;
    this.#leads = false;
    this.#sequence = 1;
    return true;
  }

  /** Sends what is packed, with `last` when that is all there will be. */
  #send(): boolean {
    if (!this.#sendLead()) return false;
    const last = this.#ending && !this.#holds;
    const flags = (this.#count === 0 ? 0 : PartFlag.packed) | (last ? PartFlag.last : 0);
    const message = this.#pack.subarray(0, this.#packed);
    if (!this.#port.sendPart(this.#sequence, this.#count, flags, packedBytes, message)) return false;
    this.#sequence = (this.#sequence + 1) >>> 0;
    this.#packed = 0;
    this.#count = 0;
    if (last) {
      this.stop();
      this.#port.onLastSent();
    }
    return true;
  }
}
