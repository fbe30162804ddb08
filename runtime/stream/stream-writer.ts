/**
 * The sending direction of a stream. It packs small messages into parts, and sends a part when the part is
 * full or the event-loop iteration ends, while it has credits. Both ends of a stream use it. It runs on the
 * JS thread of its session.
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

/** Sends the parts. */
export interface PartPort {
  /**
   * Sends part `sequence` if it has a credit. Otherwise returns false without any effect, and calls
   * `onCredit()` of the writer when a credit may be available. Throws when the message cannot be encoded.
   */
  sendPart(
    sequence: number,
    count: number,
    flags: number,
    type: MessageType<unknown, unknown>,
    message: unknown,
  ): boolean;
  /** Runs before the first message is written; `lead()` may be called then. */
  onFirstMessage?(): void;
  /** Runs when there is room again after `write` has returned false. */
  onWritable(): void;
  /** Runs when the part with the flag `last` has been sent. */
  onLastSent(): void;
  /** Runs when a message that `write` has accepted cannot be sent. No message follows after that. */
  onWriteFault(error: unknown): void;
}

const nothing = new Uint8Array(0);
const writer = new Writer();

/**
 * Returns the size limit of a part with several messages, which count as one message for the peer's message
 * limit.
 */
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
  /** A message that did not fit the packed part. */
  #held: unknown;
  #holds = false;
  #lengths: Lengths | undefined;
  #atTurnEnd = false;
  /** True after the first message. */
  #begun = false;
  /** True when an empty part must be sent first. */
  #leads = false;
  #ending = false;
  #done = false;

  /** `capacity` is the size limit of a packed part. */
  constructor(type: MessageType<unknown, unknown>, capacity: number, port: PartPort) {
    this.#type = type;
    this.#capacity = capacity;
    this.#port = port;
  }

  /**
   * Accepts a message. Returns false when no more may follow until `onWritable`. Throws the errors of its
   * encoder; the message is then not part of the stream.
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
   * Sends an empty part before the first message, to carry metadata. It has no effect after the first part.
   */
  lead(): void {
    if (this.#done || this.#sequence !== 0) return;
    this.#leads = true;
    this.#sendLead();
  }

  /** Runs when `sendPart` has sent the part without its message. The message follows with the next part. */
  skip(): void {
    this.#sequence = (this.#sequence + 1) >>> 0;
  }

  /** Ends this direction (half-close): sends the written messages, with the flag `last`. */
  end(): void {
    if (this.#done) return;
    this.#ending = true;
    if (!this.#holds) this.#send();
  }

  /** Drops everything when the stream has ended. */
  stop(): void {
    this.#done = true;
    this.#held = undefined;
    this.#lengths = undefined;
    this.#holds = false;
    this.#pack = nothing;
    this.#count = 0;
  }

  /** Runs when a credit may be available. */
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

  /** Returns false when the part that must go first has no credit. */
  #sendLead(): boolean {
    if (!this.#leads) return true;
    if (!this.#port.sendPart(0, 0, 0, packedBytes, nothing)) return false;
    this.#leads = false;
    this.#sequence = 1;
    return true;
  }

  /** Sends the packed messages, with the flag `last` when no more follow. */
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
