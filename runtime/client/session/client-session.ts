/**
 * The client's side of a session: the table of calls in flight. Each call has an entry, whose index is its
 * call slot. Entries are reused, so the only object created for a call is its promise. `start` fills an
 * entry, and one SETTLED or FAILED event empties it. A channel owns this object and uses it on its JS thread.
 */
import type { FabricContext } from '../../boundary/fabric-context.ts';
import { Incoming } from '../../boundary/incoming/incoming.ts';
import { noSlot } from '../../boundary/outgoing/outgoing.ts';
import { Submission, type Target } from '../../boundary/outgoing/submission.ts';
import type { SessionOwner } from '../../boundary/sessions.ts';
import { timeLeftUs } from '../../boundary/time/deadlines.ts';
import { failCall, type Resolve, refuseCall, refuseRequest, unheard } from '../../core/errors/failing.ts';
import {
  failure,
  leaseLost,
  memoryFailure,
  processedName,
  responseFault,
} from '../../core/errors/failure.ts';
import type { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import { Ev, PendingRelease, Reason, SubOp } from '../../native/native.ts';
import type { ClientMethod } from '../call/client-method.ts';
import type { CallQueue } from '../queue/call-queue.ts';
import type { Unsent } from '../queue/unsent.ts';
import { AnswerTally } from './answer-tally.ts';
import { CallDeadlines } from './call-deadlines.ts';
import type { CallExtras, CallPlace } from './call-extras.ts';
import { refusedResponse, requestRefusal, statusError } from './call-faults.ts';
import { CallRow } from './call-row.ts';
import { LastWords } from './last-words.ts';
import type { ClientSessionListener, PartEvents } from './session-listeners.ts';
import { Silence } from './silence.ts';

export class ClientSession implements SessionOwner, CallPlace {
  readonly target: Target;
  /** Number of calls in flight. */
  inFlight = 0;
  /** Number of call slots of cancelled calls that are pending release at the server. */
  held = 0;
  /** Number of calls made so far, including streams. */
  calls = 0;
  /** True when the server has refused the connection, so that it runs none of the calls. */
  unserved = false;
  /** The streams of the session, if any. */
  parts: PartEvents | undefined;
  readonly tally: AnswerTally;
  readonly silence: Silence;
  readonly #lastWords: LastWords;
  readonly #context: FabricContext;
  readonly #queue: CallQueue;
  readonly #listener: ClientSessionListener;
  readonly #submission: Submission;
  readonly #incoming: Incoming;
  readonly #events: Int32Array;
  readonly #callsMax: number;
  /** Entries by call slot, created when a slot is first used. */
  readonly #rows: CallRow[] = [];
  /** The free entries, the most recently used first. */
  #freeRow: CallRow | undefined;
  readonly #deadlines: CallDeadlines;

  constructor(
    context: FabricContext,
    target: Target,
    inflightMax: number,
    queue: CallQueue,
    listener: ClientSessionListener,
  ) {
    this.target = target;
    this.#context = context;
    this.#queue = queue;
    this.#listener = listener;
    this.#lastWords = new LastWords(context.native, target.session, listener, target.peer);
    this.tally = new AnswerTally(() => listener.onConsecutiveErrors());
    this.silence = new Silence(() => listener.onSilence());
    this.#submission = new Submission(SubOp.request, target);
    this.#events = context.native.events;
    this.#incoming = new Incoming(context, target.session, context.answerMemory);
    this.#callsMax = inflightMax;
    this.#deadlines = new CallDeadlines(this.#rows, (row) => this.#giveUp(row, Reason.deadline));
    context.sessions.attach(this);
  }

  get full(): boolean {
    return this.#freeRow === undefined && this.#rows.length === this.#callsMax;
  }

  /**
   * Sends a call and takes over its promise. The parts of the call are arguments, because a record would cost
   * an object per call. Returns false, without any effect, when no call slot or send slot is free or the
   * session is gone. `deadlineMs` is absolute on the clock of deadlines.ts, or 0. `waited` is true for a call
   * that comes from a queue.
   */
  start(
    method: ClientMethod,
    request: unknown,
    deadlineMs: number,
    extras: CallExtras | undefined,
    resolve: Resolve,
    waited = false,
  ): boolean {
    // The entry is taken before the message is encoded, because a getter of the message may make a call
    // itself.
    const row = this.#takeRow();
    if (row === undefined) return false;
    const { call } = row;
    if (method.expectedResponseBytes !== 0)
      this.#context.leases.expectResponse(method.id, method.expectedResponseBytes);
    let result: number;
    try {
      const replyBuffer =
        extras?.into === undefined ? 0 : this.#context.leases.blockOf(extras.into, method.path);
      const submission = this.#submission;
      submission.call = call;
      // A signed 32-bit number: V8 allocates memory for any other number in a property.
      submission.method = method.id | 0;
      submission.timeoutUs = timeLeftUs(deadlineMs);
      submission.metadata = extras?.metadata;
      submission.replyBuffer = replyBuffer;
      submission.replyBufferOnly = replyBuffer !== 0 && extras?.mayOverflow === false;
      result = this.#context.outgoing.submit(submission, method.requestType, request);
    } catch (cause) {
      this.#releaseCallSlot(row);
      extras?.unwatch();
      refuseRequest(resolve, method.path, cause, waited);
      return true;
    }
    if (result < 0) {
      this.#releaseCallSlot(row, result);
      if (result === noSlot) return false;
      if (result === -Reason.sessionLost) {
        this.lost();
        return false;
      }
      const unsent = { method, request, deadlineMs, extras, resolve };
      const { shortBytes } = this.#context.outgoing.bulk;
      if (result === -Reason.noMemory && this.#queue.awaitMemory(unsent, this.#context, shortBytes))
        return true;
      extras?.unwatch();
      const refusal = requestRefusal(this.#context, this.target, method.path, -result);
      refuseCall(resolve, () => refusal, waited);
      return true;
    }
    ++this.inFlight;
    ++this.calls;
    row.method = method;
    row.request = request;
    row.resolve = resolve;
    row.batch = this.#context.batch;
    row.extras = extras;
    try {
      if (deadlineMs !== 0) this.#deadlines.set(row, deadlineMs);
      extras?.watch(this, call);
    } catch (cause) {
      // The call is in flight but cannot be watched. The call fails at once, and its response is dropped.
      row.resolve = unheard;
      refuseRequest(resolve, method.path, cause, waited);
      this.#giveUp(row, Reason.cancelled);
      return true;
    }
    // This step must be last, because a getter may run user code, which must see this call in flight.
    if (method.check.left > 0) method.check.look(request);
    return true;
  }

  cancelCall(call: number, reason: number): void {
    const row = this.#rows[call];
    if (row !== undefined) this.#giveUp(row, reason);
  }

  onSettled(at: number): void {
    if (this.silence.calls !== 0) this.silence.heard();
    const call = this.#events[at + Ev.call]!;
    const row = this.#rows[call];
    const resolve = row?.resolve;
    const method = row?.method;
    if (row === undefined || resolve === undefined || method === undefined) {
      if (call >= this.#callsMax && this.parts !== undefined) this.parts.onSettled(at, call);
      else this.#incoming.discard(at);
      return;
    }
    const { extras } = row;
    const status = this.#events[at + Ev.status]!;
    const refused = status === Status.UNAVAILABLE && this.#events[at + Ev.processed] === 0;
    const unsent = refused ? this.#unsent(row) : undefined;
    const confirms = row.givenUp && this.#events[at + Ev.messageBytes] === 0;
    const short = this.#whyShort(row);
    this.#free(row);
    this.tally.count(status, at);
    if (refused) this.#listener.onRejected();
    if (status !== Status.OK) {
      if (confirms) failCall(resolve, this.#confirmed(at, method.path, status, short, extras?.cause));
      else if (unsent !== undefined && this.#queue.requeue(unsent)) this.#incoming.discard(at);
      else if (this.#isRefused(at, status)) {
        this.#incoming.discard(at);
        failCall(resolve, refusedResponse(method, this.#context, at, extras));
      } else failCall(resolve, this.#statusError(at, method, status, extras));
    } else {
      let response: unknown;
      let fault: RpcError | undefined;
      try {
        response = this.#incoming.message(at, method.responseType, extras?.into);
        if (extras?.listens) this.#tell(at, extras);
      } catch (cause) {
        fault = responseFault(method.path, cause);
      }
      if (fault === undefined) resolve(response);
      else failCall(resolve, fault);
    }
    this.#listener.onCallDone();
  }

  onPartWaits(at: number): void {
    this.parts?.onPartWaits(this.#events[at + Ev.call]!);
  }

  onFailed(at: number): void {
    const call = this.#events[at + Ev.call]!;
    const reason = this.#events[at + Ev.reason]!;
    const processed = this.#events[at + Ev.processed]!;
    const held = this.#events[at + Ev.pendingRelease]!;
    if (reason === Reason.sessionLost) {
      // lost() is called before any code of the application runs, because that code may begin a call.
      this.lost();
      if (this.#lastWords.defer(() => this.#failed(call, reason, processed, held))) return;
    }
    this.#failed(call, reason, processed, held);
  }

  #failed(call: number, reason: number, known: number, held: number): void {
    if (reason === Reason.deadline && known !== 0) this.silence.deadline();
    const row = this.#rows[call];
    const resolve = row?.resolve;
    const method = row?.method;
    if (row === undefined || resolve === undefined || method === undefined) {
      if (call >= this.#callsMax) this.parts?.onFailed(call, reason, known, held, this.#lastWords.why);
      return;
    }
    const { extras } = row;
    const processed = this.unserved ? 'no' : processedName(known);
    const unsent = reason === Reason.sessionLost && processed === 'no' ? this.#unsent(row) : undefined;
    if ((held & PendingRelease.replyBuffer) !== 0) extras?.into?.release();
    const short = this.#whyShort(row);
    this.#free(row, (held & PendingRelease.slot) !== 0);
    if (reason === Reason.deadline && processed !== 'no') this.tally.count(Status.DEADLINE_EXCEEDED);
    if (reason === Reason.sessionLost) {
      if (unsent !== undefined && this.#queue.requeue(unsent, this.unserved)) return;
      failCall(resolve, failure(reason, method.path, processed, this.#lastWords.why));
    } else {
      const lost = (held & PendingRelease.replyBuffer) !== 0 ? leaseLost : short;
      failCall(resolve, memoryFailure(this.#context, reason, method.path, processed, lost, extras?.cause));
    }
    this.#listener.onCallDone();
  }

  onReleased(at: number): void {
    const call = this.#events[at + Ev.call]!;
    if (!this.#lastWords.defer(() => this.#released(call), false)) this.#released(call);
  }

  #released(call: number): void {
    if (this.silence.calls !== 0) this.silence.heard();
    const row = this.#rows[call];
    if (row === undefined) this.parts?.onReleased(call);
    else {
      --this.held;
      this.#putRow(row);
      this.#listener.onCallDone();
    }
  }

  lost(): void {
    if (this.target.gone === true) return;
    this.target.gone = true;
    this.#listener.onSessionLost();
  }

  onDown(reason: string): void {
    this.#lastWords.own = reason;
    const { batch } = this.#context;
    if (!this.#lastWords.defer(() => this.#ended(batch))) this.#ended(batch);
  }

  /** Fails all calls of the session that are left when it ends. `batch` is the batch of the event. */
  #ended(batch: number): void {
    const { why } = this.#lastWords;
    this.#deadlines.stop();
    // Native code has failed every call that it knew when it created this batch. Calls that were started
    // later are staged and will not be sent. All remaining calls fail here, so that no caller waits for ever.
    for (const row of this.#rows) {
      const { resolve } = row;
      if (resolve === undefined) continue;
      const path = row.method?.path ?? '';
      const staged = this.unserved || row.batch === batch;
      const unsent = staged ? this.#unsent(row) : undefined;
      this.#free(row);
      if (unsent !== undefined && this.#queue.requeue(unsent, this.unserved)) continue;
      failCall(resolve, failure(Reason.sessionLost, path, staged ? 'no' : 'maybe', why));
    }
    this.parts?.onDown(why, batch);
    this.#listener.onSessionDown(why);
  }

  onRequest(at: number): void {
    this.#incoming.discard(at);
  }

  onCancelled(): void {}

  /** Returns a free entry, or undefined when each call slot has a call. */
  #takeRow(): CallRow | undefined {
    const row = this.#freeRow;
    if (row !== undefined) {
      this.#freeRow = row.nextFree;
      row.nextFree = undefined;
      return row;
    }
    const call = this.#rows.length;
    if (call === this.#callsMax) return undefined;
    const made = new CallRow(call);
    this.#rows.push(made);
    return made;
  }

  #putRow(row: CallRow): void {
    row.nextFree = this.#freeRow;
    this.#freeRow = row;
  }

  /**
   * Frees the slot of a call that was not sent. If it was the last free slot, a call that a getter of the
   * message has made may wait for this slot.
   */
  #releaseCallSlot(row: CallRow, result = 0): void {
    const last = this.full;
    this.#putRow(row);
    if (last && result !== noSlot) queueMicrotask(() => this.#listener.onCallDone());
  }

  /** Runs before the entry is emptied. */
  #unsent({ method, request, resolve, extras, givenUp, deadlineMs }: CallRow): Unsent | undefined {
    // A call that was cancelled in the meantime fails for its own reason.
    if (givenUp || method === undefined || resolve === undefined) return undefined;
    return { method, request, deadlineMs, extras, resolve };
  }

  #giveUp(row: CallRow, reason: number): void {
    if (row.resolve === undefined || row.givenUp) return;
    row.givenUp = true;
    row.deadlineMs = 0;
    // The flush comes first, because native code does not know a call that is only staged.
    this.#context.outgoing.flush();
    row.awaitedBytes = this.#context.native.cancel(this.target.session, row.call, reason);
  }

  #free(row: CallRow, held = false): void {
    const { extras } = row;
    if (extras !== undefined) extras.unwatch();
    row.empty();
    if (held) ++this.held;
    else this.#putRow(row);
    --this.inFlight;
  }

  /**
   * Returns which memory a cancelled call was waiting for, or ''. Runs before the call's entry is emptied.
   */
  #whyShort({ givenUp, awaitedBytes }: CallRow): string {
    return givenUp && awaitedBytes !== 0 ? this.#context.shortage.why(awaitedBytes) : '';
  }

  #tell(at: number, extras: CallExtras): void {
    const metadata = this.#incoming.responseMetadata(at);
    if (metadata !== undefined) extras.tell(metadata);
  }

  #statusError(at: number, method: ClientMethod, status: number, extras: CallExtras | undefined): RpcError {
    const metadata = this.#incoming.responseMetadata(at);
    const error = statusError(method, this.#incoming, this.#events, at, status, metadata?.trailer);
    try {
      if (metadata !== undefined) extras?.tell(metadata);
    } catch {
      // This error is ignored, because the caller gets the call's own error, which came first.
    }
    return error;
  }

  /** Returns the error of a large cancelled call that the server has released. */
  #confirmed(at: number, path: string, status: number, why: string, cause: unknown): RpcError {
    this.#incoming.discard(at);
    const reason = status === Status.DEADLINE_EXCEEDED ? Reason.deadline : Reason.cancelled;
    return failure(reason, path, processedName(this.#events[at + Ev.processed]!), why, cause);
  }

  /** Returns whether this side had no memory for the response for a reason that concerns only this call. */
  #isRefused(at: number, status: number): boolean {
    return status === Status.RESOURCE_EXHAUSTED && this.#events[at + Ev.refusedBytes] !== 0;
  }
}
