/**
 * A stream on the client. It takes requests from an iterable and passes responses to an async iterator. The
 * stream ends when all of its frames have been completed (ending.ts). A channel creates it on the JS thread.
 */
import { deadlines, turnNow } from '../../boundary/time/deadlines.ts';
import type { DeadlineOwner } from '../../boundary/time/timer-wheel.ts';
import { failure, memoryFailure, processedName, reasonOf } from '../../core/errors/failure.ts';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import type { ResponseMetadata } from '../../core/metadata-wire.ts';
import { Scope } from '../../core/scopes.ts';
import { partLingerMs } from '../../limits.ts';
import { Ev, Reason } from '../../native/native.ts';
import { type ReaderOwner, StreamReader } from '../../stream/stream-reader.ts';
import type { ClientMethod } from '../call/client-method.ts';
import type { CallExtras, CallPlace } from '../session/call-extras.ts';
import { statusError } from '../session/call-faults.ts';
import type { ClientStreams } from './client-streams.ts';
import { nextStep, type Outstanding, type StreamState } from './ending.ts';
import { canRepeat, type Opening, sendOpening } from './opening.ts';
import { Outcome } from './outcome.ts';
import { Requests } from './requests.ts';
import { Responses } from './responses.ts';
import type { OpenStream } from './stream-row.ts';

/** The owner of streams: a channel. */
export interface StreamHost {
  /** Calls `stream.open()` as soon as a connection has room, or refuses the stream. */
  startStream(stream: ClientStream): void;
  /** Runs when the stream was cancelled before it was opened. */
  forgetStream(stream: ClientStream): void;
  /** False for streams of the channel itself, which outlier detection and load reports leave out. */
  readonly tallied?: false;
}

const noTimer = -1;

export class ClientStream implements OpenStream, ReaderOwner, CallPlace, DeadlineOwner {
  readonly method: ClientMethod;
  readonly request: unknown;
  readonly reader: StreamReader;
  /** Unique among the open streams of its session. */
  number = 0;
  /** Call slot of the OPEN. */
  call = -1;
  /** Number of parts in flight, maintained by ClientStreams. */
  pushes = 0;
  pulls = 0;
  pushedBytes = 0;

  readonly #host: StreamHost;
  readonly #timeoutMs: number;
  readonly extras: CallExtras | undefined;
  readonly #outcome: Outcome;
  /** The caller's async context, in which requests are read. */
  readonly #scope = new Scope();
  #state: StreamState = 'new';
  #streams: ClientStreams | undefined;
  #requests: Requests | undefined;
  #responses: Responses | undefined;
  #deadlineMs = 0;
  #timer = noTimer;
  /** True until the OPEN has been answered. */
  #pending = false;
  #onOver: (() => void) | undefined;
  /** Ends the stream, after a getter of the request has ended it while the OPEN was being encoded. */
  #fate: (() => void) | undefined;
  /** True when the stream has been opened a second time. */
  #repeated = false;

  /**
   * `request` is a message or an iterable of messages, depending on the method. A `timeoutMs` of -1 means no
   * limit. `wrong` is an error with which the stream ends as soon as it is read.
   */
  constructor(
    host: StreamHost,
    method: ClientMethod,
    request: unknown,
    timeoutMs: number,
    extras: CallExtras | undefined,
    wrong: unknown,
  ) {
    this.method = method;
    this.reader = new StreamReader(this, false);
    this.#host = host;
    this.request = request;
    this.#timeoutMs = timeoutMs;
    this.extras = extras;
    this.#outcome = new Outcome(method.path, extras, wrong);
  }

  /** The deadline in milliseconds on the clock of `clockMs()`, or Infinity for no deadline. */
  get endMs(): number {
    return this.#deadlineMs === 0 ? Infinity : this.#deadlineMs;
  }

  /** True when the stream goes on waiting after failed attempts to connect. */
  get waitForReady(): boolean {
    return this.extras?.waitForReady ?? this.method.waitForReady;
  }

  onFirstRead(): void {
    const { path } = this.method;
    const aborted = this.extras?.abortedBy;
    if (this.#outcome.error !== undefined) {
      this.refuse(this.#outcome.error);
    } else if (aborted !== undefined) {
      this.refuse(failure(reasonOf(aborted.reason), path, 'no', '', aborted.reason));
    } else if (this.#timeoutMs === 0) {
      this.refuse(failure(Reason.deadline, path, 'no', 'timeoutMs was 0'));
    } else {
      this.#state = 'waiting';
      if (this.#timeoutMs > 0) {
        this.#deadlineMs = turnNow() + this.#timeoutMs;
        this.#setTimer(this.#deadlineMs);
      }
      this.extras?.watch(this, 0);
      this.#host.startStream(this);
    }
  }

  /** Ends a stream that cannot be opened. */
  refuse(error: unknown): void {
    if (this.#state === 'opening') {
      this.#fate ??= () => this.giveUp(Reason.cancelled, error);
      return;
    }
    this.#outcome.error ??= error;
    this.#over();
  }

  /** Opens the stream on a session. Returns false, without any effect, when the session has no room. */
  open(streams: ClientStreams): boolean {
    if (streams.max === 0) {
      const text = `${this.method.path}: no streams on this connection: streamsMax is 0 on one of its sides`;
      this.refuse(new RpcError(Status.UNIMPLEMENTED, text, { processed: 'no' }));
      return true;
    }
    const number = streams.nextNumber();
    if (number === 0) return false;
    this.number = number;
    const done = this.#sendOpening(streams);
    this.#fate?.();
    return done || this.#ended;
  }

  #sendOpening(streams: ClientStreams): boolean {
    this.#state = 'opening';
    let opening: Opening;
    try {
      opening = sendOpening(streams, this, this.extras?.metadata, this.#deadlineMs);
    } finally {
      this.#state = 'waiting';
    }
    if (opening === 'not now') return false;
    if (opening instanceof RpcError) {
      this.refuse(opening);
      return true;
    }
    this.#streams = streams;
    this.#state = 'open';
    this.#pending = true;
    this.#responses = new Responses(this, streams, this.#outcome, this.extras);
    this.#responses.pull();
    if (opening === 'begun') {
      this.#requests = new Requests(this, streams, this.#scope);
      this.#requests.start(this.request);
    }
    return true;
  }

  // --- responses in

  onConsumed(): void {
    this.#responses?.pull();
  }

  onWanted(call: number): void {
    this.#streams!.want(call);
  }

  onUnwanted(call: number): void {
    this.#streams!.refuse(call);
  }

  get sending(): boolean {
    return this.#state === 'open';
  }

  /** True while the responses of the stream are read. */
  get #receiving(): boolean {
    return this.#state === 'open' || this.#state === 'settled';
  }

  /** True when the application has got the end of the stream. */
  get #ended(): boolean {
    return this.#state === 'over' || this.#state === 'left';
  }

  // --- events

  retry(): void {
    this.#responses?.pull();
    this.#requests?.onCredit();
  }

  onPushSettled(at: number): void {
    const status = this.#word(at, Ev.status);
    if (this.#state !== 'open') {
      this.#streams!.incoming.whole.discard(at);
      this.#checkOver();
    } else if (status === Status.OK) this.#requests?.onAnswer();
    else this.giveUp(Reason.cancelled, this.#statusError(at, status, this.method.requestStream));
  }

  onPullSettled(at: number, sequence: number): void {
    const status = this.#word(at, Ev.status);
    if (!this.#receiving) this.#streams!.incoming.whole.discard(at);
    else if (status === Status.OK) this.#responses!.receive(at, sequence);
    else this.giveUp(Reason.cancelled, this.#statusError(at, status, true));
    this.#checkOver();
  }

  onPartFailed(reason: number, why: string): void {
    if (this.#receiving) {
      const error = memoryFailure(this.#streams!.context, reason, this.method.path, 'maybe', why);
      if (reason === Reason.sessionLost) this.#lose(error);
      else this.giveUp(Reason.cancelled, error);
    }
    this.#checkOver();
  }

  onOpenSettled(at: number): void {
    const status = this.#word(at, Ev.status);
    const { whole } = this.#streams!.incoming;
    this.#pending = false;
    const processed = processedName(this.#word(at, Ev.processed));
    if (this.#outcome.reason === 0 && this.#host.tallied !== false) this.#streams!.onAnswer(status, at);
    if (status === Status.UNAVAILABLE && processed === 'no') {
      this.#streams!.onRejected();
      if (this.#repeats(at)) return;
    }
    const metadata = whole.responseMetadata(at);
    const error = status === Status.OK ? undefined : this.#statusError(at, status, false, metadata);
    if (error === undefined) whole.discard(at);
    // A stream that the application has cancelled ends with that reason, even when the handler has succeeded.
    else if (this.#outcome.reason === 0) this.#outcome.error ??= error;
    this.#outcome.settle(metadata);
    this.#outcome.giveUp(processed);
    this.#requests?.stop();
    if (this.#state === 'open') this.#state = 'settled';
    this.#checkOver();
  }

  onOpenFailed(reason: number, processed: number, why: string): void {
    this.#pending = false;
    const word = processedName(processed);
    if (reason === Reason.sessionLost && word === 'no' && this.#repeats(-1)) return;
    if (this.#outcome.reason === 0)
      this.#lose(memoryFailure(this.#streams!.context, reason, this.method.path, word, why));
    else this.#outcome.giveUp(word);
    this.#checkOver();
  }

  // --- ending

  cancelCall(_token: number, reason: number): void {
    this.giveUp(reason, undefined);
  }

  onDeadline(): void {
    this.#timer = noTimer;
    if (this.#ended) this.#streams?.cancel(this, Reason.cancelled, true);
    else this.giveUp(Reason.deadline, undefined);
  }

  /** Runs when the application has left the loop over the responses. */
  onLeft(): Promise<void> | undefined {
    if (this.#state === 'new') this.#state = 'over';
    this.giveUp(Reason.cancelled, undefined);
    if (this.#ended) return undefined;
    return new Promise((resolve) => {
      this.#onOver = resolve;
    });
  }

  onEnd(): unknown {
    return this.#outcome.end(this.reader.complete);
  }

  /** Ends the stream from this side. The application gets `error`, or the error of `reason`. */
  giveUp(reason: number, error: unknown): void {
    if (this.#ended || this.#state === 'given up') return;
    if (this.#state === 'opening') {
      this.#fate ??= () => this.giveUp(reason, error);
      return;
    }
    const before = this.#state;
    this.#outcome.reason = reason;
    this.#outcome.error ??= error;
    if (before === 'again') this.#outcome.giveUp('no');
    else if (before === 'settled') this.#outcome.giveUp('yes');
    this.#state = 'given up';
    this.#requests?.stop();
    this.reader.leave();
    if (before === 'waiting' || before === 'new') {
      this.#host.forgetStream(this);
      this.#outcome.giveUp('no');
      this.#over();
    } else {
      this.#streams!.cancel(this, reason, false);
      this.#checkOver();
    }
  }

  /** Runs when the session is gone. The session's calls fail by themselves, so nothing is cancelled. */
  #lose(error: unknown): void {
    this.#outcome.reason = Reason.sessionLost;
    this.#outcome.error ??= error;
    this.#state = 'given up';
    this.#requests?.stop();
    this.reader.leave();
  }

  /** Returns whether the stream is opened again, which happens once. `at` is the response to drop, or -1. */
  #repeats(at: number): boolean {
    const { reason, error } = this.#outcome;
    // The rule is the same as for calls in ChannelQueue.requeue().
    const waits = this.waitForReady && this.#streams?.rejected === true;
    if ((this.#repeated && !waits) || reason !== 0 || error !== undefined) return false;
    if (!canRepeat(this)) return false;
    if (at >= 0) this.#streams!.incoming.whole.discard(at);
    this.#repeated = true;
    this.#state = 'again';
    this.#requests?.stop();
    this.#checkOver();
    return true;
  }

  #repeat(): void {
    this.#streams!.leave(this);
    this.#streams = undefined;
    this.#requests = undefined;
    this.#responses = undefined;
    this.#state = 'waiting';
    this.#host.startStream(this);
  }

  get #outstanding(): Outstanding {
    if (this.#pending) return 'its OPEN';
    if (this.pushedBytes !== 0) return 'memory';
    return this.pushes + this.pulls === 0 ? 'nothing' : 'parts';
  }

  /** Runs when the OPEN or a part of the stream has ended. */
  #checkOver(): void {
    switch (nextStep(this.#state, this.#outstanding)) {
      case 'end':
        this.#over();
        this.#checkOver();
        break;
      case 'linger':
        if (this.#timer === noTimer) this.#setTimer(turnNow() + partLingerMs);
        break;
      case 'leave':
        this.#state = 'left';
        this.#setTimer(0);
        this.#streams?.leave(this);
        break;
      case 'repeat':
        this.#repeat();
        break;
      case 'wait':
        break;
    }
  }

  #over(): void {
    this.#state = 'over';
    this.#setTimer(0);
    this.extras?.unwatch();
    this.reader.close();
    this.#onOver?.();
  }

  #setTimer(deadlineMs: number): void {
    if (this.#timer !== noTimer) deadlines.remove(this.#timer);
    this.#timer = deadlineMs === 0 ? noTimer : deadlines.add(deadlineMs, this, 0);
  }

  #word(at: number, word: number): number {
    return this.#streams!.context.native.events[at + word]!;
  }

  #statusError(at: number, status: number, begun: boolean, metadata?: ResponseMetadata): RpcError {
    const { incoming, context } = this.#streams!;
    const { trailer } = metadata ?? incoming.whole.responseMetadata(at) ?? {};
    return statusError(this.method, incoming.whole, context.native.events, at, status, trailer, begun);
  }
}
