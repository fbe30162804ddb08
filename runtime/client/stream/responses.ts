/**
 * The incoming responses of a stream. It requests as many parts as the window allows, decodes them, and
 * passes the responses to the reader. A client stream creates this object when the stream is opened.
 */
import { responseFault } from '../../core/errors/failure.ts';
import { Ev, Reason } from '../../native/native.ts';
import type { CallExtras } from '../session/call-extras.ts';
import { requestRefusal } from '../session/call-faults.ts';
import type { ClientStreams } from './client-streams.ts';
import type { Outcome } from './outcome.ts';
import { Pulls } from './pulls.ts';
import type { OpenStream } from './stream-row.ts';

export class Responses {
  readonly #stream: OpenStream;
  readonly #streams: ClientStreams;
  readonly #outcome: Outcome;
  readonly #extras: CallExtras | undefined;
  readonly #pulls: Pulls;

  constructor(stream: OpenStream, streams: ClientStreams, outcome: Outcome, extras: CallExtras | undefined) {
    this.#stream = stream;
    this.#streams = streams;
    this.#outcome = outcome;
    this.#extras = extras;
    this.#pulls = new Pulls(stream);
  }

  /** Requests as many parts as the window allows. */
  pull(): void {
    const stream = this.#stream;
    if (!stream.sending) return;
    const result = this.#pulls.send(this.#streams);
    if (result >= 0) return;
    const { context, target } = this.#streams;
    const error = requestRefusal(context, target, stream.method.path, -result, 'maybe');
    stream.giveUp(Reason.cancelled, error);
  }

  /** Handles the part that belongs to the event at `at`. */
  receive(at: number, sequence: number): void {
    const { incoming, context } = this.#streams;
    const { events } = context.native;
    const { method, reader } = this.#stream;
    try {
      const part = incoming.answer(at, sequence, method.responseType);
      if (this.#extras?.listens) this.#outcome.tellHeader(incoming.responseMetadata(at));
      const bytes = events[at + Ev.region]! > 0 ? events[at + Ev.messageBytes]! : 0;
      this.#pulls.arrived(part.last, bytes, part.messages.length === 0 && sequence !== 0 && !part.last);
      if (!reader.arrive(sequence, part)) throw new Error('messages after the last one');
    } catch (cause) {
      this.#stream.giveUp(Reason.cancelled, responseFault(method.path, cause));
    }
    this.pull();
  }
}
