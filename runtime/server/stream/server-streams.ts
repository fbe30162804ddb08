/**
 * The streams of one server session. It finds the stream of each part, opens new streams, and answers parts
 * that need no handler. A server owns this object and uses it on its JS thread.
 */

import { Submission } from '../../boundary/outgoing/submission.ts';
import { Status } from '../../core/errors/status.ts';
import { Ev, SubOp } from '../../native/native.ts';
import { IncomingParts } from '../../stream/incoming-parts.ts';
import { PartFlag, PartKind, partHeader } from '../../stream/part-header.ts';
import { StalledStreams } from '../../stream/stalled-streams.ts';
import {
  broken,
  connectionLost,
  exhausted,
  givenUp,
  malformedMetadata,
  type Refusal,
  undecodable,
  unknownMethod,
} from '../call-faults.ts';
import { ServerCall } from '../server-call.ts';
import type { StreamMethod } from '../server-method.ts';
import type { ServerParts, Shared } from '../server-session.ts';
import { ServerStream } from './server-stream.ts';
import type { StreamTable, TableStream } from './stream-table.ts';

export class ServerStreams implements ServerParts, StreamTable {
  readonly session: Shared;
  readonly incoming: IncomingParts;
  readonly submission: Submission;
  readonly stalled: StalledStreams;

  readonly #streamsMax: number;
  readonly #events: Int32Array;
  readonly #open = new Map<number, ServerStream>();

  constructor(session: Shared, streamsMax: number) {
    this.session = session;
    this.incoming = new IncomingParts(session.context, session.target.session, 'server');
    this.submission = new Submission(SubOp.response, session.target);
    this.submission.method = Status.OK;
    this.stalled = new StalledStreams(session.context);
    this.#streamsMax = streamsMax;
    this.#events = session.context.native.events;
  }

  /** Number of open streams. */
  get size(): number {
    return this.#open.size;
  }

  onPart(at: number): void {
    const handle = this.#events[at + Ev.call]!;
    const why = this.incoming.read(at);
    const { header } = this.incoming;
    if (why !== '') {
      this.incoming.whole.discard(at);
      this.session.responder.refuse(handle, { status: Status.INTERNAL, text: why });
    } else if (header.kind === PartKind.open) {
      this.#onOpen(at, handle);
    } else {
      const stream = this.#open.get(header.stream);
      if (header.kind === PartKind.push) {
        if (stream === undefined) {
          // The stream ended while the part was on its way.
          this.session.admission.came(at);
          this.incoming.whole.discard(at);
          this.answerPush(handle);
        } else {
          this.#onPush(stream, at, handle);
        }
      } else {
        this.incoming.whole.discard(at);
        if (stream === undefined) this.answerPull(handle, header.stream, header.sequence);
        else stream.onPull(handle, header.sequence, header.awaited);
      }
    }
  }

  #onPush(stream: ServerStream, at: number, handle: number): void {
    const over = this.session.admission.partRefusal(at);
    if (over === undefined) {
      stream.onPush(at, handle);
      return;
    }
    this.incoming.whole.discard(at);
    this.answerPush(handle);
    stream.fault(over, Status.RESOURCE_EXHAUSTED);
  }

  onPartWaits(at: number): void {
    const handle = this.#events[at + Ev.call]!;
    const { header } = this.incoming;
    const push = this.incoming.read(at) === '' && header.kind === PartKind.push;
    const stream = push ? this.#open.get(header.stream) : undefined;
    if (push && stream === undefined) {
      this.answerPush(handle);
    } else if (stream?.onPushWaits(handle, header.sequence) !== true) {
      // An invalid part is detected later, when its message has arrived.
      this.session.context.native.want(this.session.target.session, handle);
    }
  }

  onCancelled(handle: number, status: number): void {
    for (const stream of this.#open.values()) {
      if (stream.call.handle !== handle) continue;
      stream.cancel(givenUp(stream.call.method, status));
      return;
    }
  }

  onDown(reason: string): void {
    this.stalled.clear();
    for (const stream of [...this.#open.values()]) stream.cancel(connectionLost(stream.call.method, reason));
  }

  /** Runs when a stream has ended. */
  leave(stream: TableStream): void {
    this.#open.delete(stream.number);
    this.stalled.delete(stream);
  }

  /** Runs when a stream has ended and its handler has finished. */
  onHandlerDone(): void {
    --this.session.load.running;
  }

  /** Answers a PUSH, which allows the client to send more. */
  answerPush(handle: number): void {
    this.session.responder.answerPart(handle, undefined);
  }

  /**
   * Answers a PULL with an empty part. The part tells that no more messages follow or, with flags 0, that no
   * message is ready yet.
   */
  answerPull(handle: number, stream: number, sequence: number, flags: number = PartFlag.last): void {
    const header = partHeader(stream, sequence, 0, PartKind.pull, flags);
    this.session.responder.answerPart(handle, header);
  }

  #onOpen(at: number, handle: number): void {
    const { handlers, admission, session } = this.session;
    const { header, whole } = this.incoming;
    const { stream: number, count, last } = header;
    ++admission.calls;
    const refuse = (refusal: Refusal): void => {
      whole.discard(at);
      this.session.responder.refuse(handle, refusal);
    };
    const living = this.#open.get(number);
    if (living !== undefined) {
      admission.came(at);
      living.fault('a second stream has the same number');
      refuse({ status: Status.INTERNAL, text: `there is a stream ${number} already` });
      return;
    }
    const id = this.#events[at + Ev.method]!;
    const method = handlers.findStream(id);
    if (method === undefined) {
      admission.came(at);
      refuse(unknownMethod(handlers.missing(id, true)));
      return;
    }
    const { path, requestStream } = method;
    const refusal = admission.refusal(path, at);
    if (refusal !== undefined) {
      refuse(refusal);
      return;
    }
    if (this.#open.size >= this.#streamsMax) {
      refuse(
        exhausted(path, `${this.#streamsMax} streams are open already (option streamsMax of the server)`),
      );
      return;
    }
    if (count !== 0 && (requestStream || !last)) {
      refuse(broken(path, 'a message where a stream of messages begins'));
      return;
    }
    const { deadlineMs, limited } = admission;
    const entries = this.incoming.entries(at);
    if (typeof entries === 'string') {
      refuse(malformedMetadata(path, entries));
      return;
    }
    let messages: readonly unknown[];
    try {
      messages = this.incoming.messages(at, method.requestType);
    } catch (error) {
      this.session.responder.refuse(handle, undecodable(path, error));
      return;
    }
    const call = new ServerCall(session, handle, method.open, deadlineMs, entries);
    call.limited = limited;
    this.#begin(number, method, call, messages);
  }

  #begin(number: number, method: StreamMethod, call: ServerCall, messages: readonly unknown[]): void {
    const stream = new ServerStream(this, number, method, call);
    ++this.session.load.running;
    this.#open.set(number, stream);
    stream.begin(messages);
  }
}
