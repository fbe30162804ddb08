/**
 * Sends what a server session answers: responses, errors, refusals. Those that find no send slot, or no
 * memory, wait here, never more than the session has calls in flight. Owned by a ServerSession, on its JS
 * thread.
 */

import type { SlotWaiter } from '../boundary/after-batch.ts';
import type { FabricContext } from '../boundary/fabric-context.ts';
import { noSlot } from '../boundary/outgoing/outgoing.ts';
import { Submission, type Target } from '../boundary/outgoing/submission.ts';
import { abortCode, RpcError } from '../core/errors/rpc-error.ts';
import { Status, type StatusCode } from '../core/errors/status.ts';
import { encodeResponseMetadata } from '../core/metadata-wire.ts';
import { AuthorizeFailed, type OnHandlerError } from '../core/warnings.ts';
import { errorTextBytes } from '../limits.ts';
import { notRun, Reason, SubOp } from '../native/native.ts';
import { authorizeFailed, handlerFailed, type Refusal, unencodable } from './call-faults.ts';
import { errorMetadata, fitting } from './error-metadata.ts';
import type { Account } from './quotas.ts';
import { ServerCall } from './server-call.ts';
import { type Answering, ShortAnswers } from './short-answers.ts';

interface ErrorAnswer {
  readonly handle: number;
  /** Status code, with the `notRun` bit. */
  readonly status: number;
  readonly text: string;
  readonly metadata: Uint8Array | undefined;
}

export class Responder implements SlotWaiter, Answering {
  /** The session is over: nothing can be answered any more. */
  down = false;

  readonly #context: FabricContext;
  readonly #target: Target;
  readonly #submission: Submission;
  readonly #onHandlerError: OnHandlerError;
  /** Of the client, where there are quotas. */
  readonly #account: Account | undefined;
  #waiting: (ServerCall | ErrorAnswer)[] = [];
  readonly #short: ShortAnswers;

  constructor(
    context: FabricContext,
    target: Target,
    account: Account | undefined,
    onHandlerError: OnHandlerError,
  ) {
    this.#context = context;
    this.#account = account;
    this.#target = target;
    this.#submission = new Submission(SubOp.response, target);
    this.#onHandlerError = onHandlerError;
    this.#short = new ShortAnswers(context, this);
  }

  stop(): void {
    this.down = true;
    for (const answer of this.#waiting.splice(0)) if (answer instanceof ServerCall) answer.over();
    this.#short.stop();
  }

  /** A call that its handler has answered is given up: what waits for memory waits no longer. */
  forget(handle: number): void {
    this.#short.forget(handle);
  }

  /** Answers a call of a one-way method, before its handler is run. */
  accept(call: ServerCall): void {
    call.accepted = true;
    this.#send({ handle: call.handle, status: Status.OK, text: '', metadata: undefined });
  }

  answer(call: ServerCall, response: unknown): void {
    call.finish();
    if (this.down || call.accepted) {
      call.over();
      return;
    }
    const { check } = call.definition;
    let result: number;
    try {
      if (check.left > 0) check.look(response);
      const submission = this.#submission;
      submission.metadata = this.#metadata(call);
      submission.call = call.handle;
      submission.method = Status.OK;
      result = this.#context.outgoing.submit(submission, call.definition.responseType, response);
    } catch (error) {
      this.fail(call, error, unencodable);
      return;
    }
    if (result >= 0) {
      this.sent();
      call.over();
      return;
    }
    const { shortBytes } = this.#context.outgoing.bulk;
    if (result === -Reason.noMemory && this.#short.add(call, response, shortBytes)) {
      call.yieldMemory();
      return;
    }
    if (result === noSlot) {
      call.response = response;
      this.#wait(call);
    } else {
      this.#send({
        handle: call.handle,
        status: result === -Reason.detached ? Status.INTERNAL : Status.RESOURCE_EXHAUSTED,
        text: this.refusalText(call, -result),
        metadata: undefined,
      });
      call.over();
    }
  }

  /** What was submitted last has been sent: it counts. */
  sent(): void {
    this.#account?.spend(this.#context.outgoing.submittedBytes);
  }

  /** Answers with what a handler threw. `failed`: what the caller learns of an error that is no RpcError. */
  fail(
    call: ServerCall,
    error: unknown,
    failed = AuthorizeFailed.is(error) ? authorizeFailed : handlerFailed,
  ): void {
    call.finish();
    this.report(call, error);
    call.over();
    const known = error instanceof RpcError ? error : undefined;
    if (this.down || call.accepted) return;
    this.#send({
      handle: call.handle,
      status: known?.code ?? Status.INTERNAL,
      text: known?.rawMessage ?? failed(call.method),
      metadata: this.#errorMetadata(call, known),
    });
  }

  /**
   * Answers a call whose deadline has passed before its handler was done. Where the deadline is the client's,
   * that says the same itself and may have done so: what the handler has set goes with neither.
   */
  outOfTime(call: ServerCall, reason: RpcError): void {
    call.finish();
    if (this.down || call.accepted) return;
    this.#send({
      handle: call.handle,
      status: reason.code,
      text: reason.rawMessage,
      metadata: call.limited ? this.#errorMetadata(call, reason) : undefined,
    });
  }

  /**
   * Tells the application of what a handler threw, unless that is how it wants to answer, or what follows
   * from the end of the call: its signal has fired, and the handler heard it.
   */
  report(call: ServerCall, error: unknown): void {
    const meant = call.aborted !== undefined && abortCode(error) !== undefined;
    // Nobody else hears of what a one-way method throws.
    if (error instanceof RpcError ? call.accepted : !meant) this.#onHandlerError(error, call.method);
  }

  /** Answers a request whose handler has not been and will not be run. */
  refuse(handle: number, { status, text }: Refusal): void {
    this.#send({ handle, status: status | notRun, text, metadata: undefined });
  }

  /** Answers a call whose response has waited too long: for memory, or for the registration of a buffer. */
  giveUp(call: ServerCall, why: string, status: StatusCode): void {
    const text =
      status === Status.RESOURCE_EXHAUSTED
        ? `${call.method}: no memory for the response on the server: ${why}${this.#ofQuota()}`
        : `${call.method}: the deadline passed on the server: ${why}`;
    this.#send({ handle: call.handle, status, text, metadata: undefined });
    call.over();
  }

  /** What the client's quota may have to do with it. */
  #ofQuota(): string {
    const most = this.#account?.limits.arenaBytesMax;
    if (most === undefined) return '';
    return `; large answers of this session may hold ${most} bytes (option quotas: arenaBytesMax of the server), until it has taken them`;
  }

  onSlotsFree(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const answer of waiting) {
      if (answer instanceof ServerCall) this.#answerLater(answer);
      else this.#send(answer);
    }
  }

  #answerLater(call: ServerCall): void {
    try {
      call.checkResponse();
    } catch (error) {
      this.fail(call, error, unencodable);
      return;
    }
    this.answer(call, call.response);
  }

  /** Of a response. Throws what the call is answered with instead when it is too large. */
  #metadata(call: ServerCall): Uint8Array | undefined {
    if (call.givenHeader === undefined && call.givenTrailer === undefined) return undefined;
    try {
      return fitting(encodeResponseMetadata(call.givenHeader, call.givenTrailer), this.#target.eagerBytes);
    } catch (error) {
      const why = (error as Error).message;
      throw new RpcError(
        Status.RESOURCE_EXHAUSTED,
        `${call.method}: the response's header and trailer: ${why}`,
      );
    }
  }

  /** Of an error. What is too large is left out, since the status matters more; the application is told. */
  #errorMetadata(call: ServerCall, error: RpcError | undefined): Uint8Array | undefined {
    const roomBytes = this.#target.eagerBytes - errorTextBytes;
    return errorMetadata(call, error, roomBytes, (cut) => this.#onHandlerError(cut, call.method));
  }

  #send(answer: ErrorAnswer): void {
    if (this.down) return;
    const submission = this.#submission;
    submission.call = answer.handle;
    submission.method = answer.status;
    submission.metadata = answer.metadata;
    const result = this.#context.outgoing.submitText(submission, answer.text, errorTextBytes);
    if (result === noSlot) this.#wait(answer);
  }

  #wait(answer: ServerCall | ErrorAnswer): void {
    this.#waiting.push(answer);
    this.#context.awaitSlots(this);
  }

  /** Why a response was not sent; `reason` of native code. */
  refusalText(call: ServerCall, reason: number): string {
    if (reason === Reason.detached)
      return `${call.method}: the memory of the response was transferred or detached before it had been sent`;
    if (reason !== Reason.tooLarge) {
      const refusal = this.#context.native.refusal();
      if (refusal !== '') return `${call.method}: no memory for the response: ${refusal}`;
      return `${call.method}: no memory for the response: raise arenaBytes or mrCacheBytes in configure() on the server`;
    }
    const bytes = this.#context.outgoing.bulk.refusedBytes;
    return `${call.method}: a response of ${bytes} bytes, but the client accepts ${this.#target.messageMaxBytes}; raise messageMaxBytes there`;
  }
}
