/**
 * Sends what a server session answers: responses, errors, refusals. Answers that find no send slot wait here,
 * and so do responses that must be copied into the arena, which has no room for them, or that lie in a large
 * buffer which is being registered. There are never more of them than the session has calls in flight, and
 * one that waits holds no memory but the application's. Owned by a ServerSession, on its JS thread.
 */

import type { FabricContext } from '../boundary/fabric-context.ts';
import { noSlot } from '../boundary/outgoing/outgoing.ts';
import { noMessage } from '../boundary/outgoing/plain-types.ts';
import { Submission, type Target } from '../boundary/outgoing/submission.ts';
import { turnNow } from '../boundary/time/deadlines.ts';
import { ResourceQueue } from '../boundary/waiting/resource-queue.ts';
import { abortCode, RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import { encodeResponseMetadata } from '../core/metadata-wire.ts';
import { AuthorizeFailed, type OnHandlerError } from '../core/warnings.ts';
import { errorTextBytes, memoryWaitMs, tellingMsMax } from '../limits.ts';
import { notRun, Reason, SubOp } from '../native/native.ts';
import { authorizeFailed, handlerFailed, type Refusal, unencodable } from './call-faults.ts';
import { errorMetadata, fitting } from './error-metadata.ts';
import type { Account } from './quotas.ts';
import { ServerCall } from './server-call.ts';

/** An error, or the answer to a part of a stream. */
interface ShortAnswer {
  readonly handle: number;
  /** Status code, with the `notRun` bit. */
  readonly status: number;
  readonly text: string;
  readonly metadata: Uint8Array | undefined;
}

/**
 * When a response stops waiting for memory. Before the caller's own deadline, since a caller that has given a
 * small call up hears nothing of it any more: a tenth of the time that is left goes to telling what was
 * missing.
 */
function lastMoment(call: ServerCall, nowMs: number): number {
  const limitMs = nowMs + memoryWaitMs;
  if (call.deadlineMs === 0) return limitMs;
  const leftMs = Math.max(0, call.deadlineMs - nowMs);
  return Math.min(limitMs, call.deadlineMs - Math.min(tellingMsMax, leftMs / 10));
}

export class Responder {
  /** The session is over: nothing can be answered any more. */
  down = false;

  readonly #context: FabricContext;
  readonly #target: Target;
  readonly #submission: Submission;
  readonly #onHandlerError: OnHandlerError;
  /** Of the client, where there are quotas. */
  readonly #account: Account | undefined;
  /** Answers that have found no send slot. */
  readonly #slotless = new ResourceQueue<ServerCall | ShortAnswer>({
    retry: (answer) => {
      if (answer instanceof ServerCall) this.#answerLater(answer);
      else this.#send(answer);
    },
  });
  /** Responses that have found no memory. */
  readonly #short = new ResourceQueue<ServerCall>({
    retry: (call) => this.#answerLater(call),
    onLate: (call) => this.#giveUp(call),
  });

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
  }

  stop(): void {
    this.down = true;
    for (const answer of this.#slotless.clear()) if (answer instanceof ServerCall) answer.over();
    for (const call of this.#short.clear()) call.over();
  }

  /** A call that its handler has answered is given up: what waits for memory waits no longer. */
  forget(handle: number): void {
    for (const call of this.#short) {
      if (call.handle !== handle) continue;
      call.over();
      this.#short.delete(call);
      return;
    }
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
    if (result === -Reason.noMemory && this.#awaitMemory(call, response)) return;
    if (result === noSlot) {
      if (this.#slotless.trying !== call) call.response = response;
      this.#awaitSlot(call);
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

  /** The response has found no memory. Returns false when there never is that much. */
  #awaitMemory(call: ServerCall, response: unknown): boolean {
    const { native, outgoing, waiters, lacking } = this.#context;
    const { shortBytes } = outgoing.bulk;
    // Where no lease holds memory, it is the system that gives none. A registration (0) ends by itself.
    if (shortBytes > native.arenaBytes) return false;
    if (shortBytes !== 0 && native.stats().arenaLeasedBlocks === 0) return false;
    call.shortBytes = shortBytes;
    if (this.#short.trying !== call) call.response = response;
    this.#short.add(call, waiters, lacking, lastMoment(call, turnNow()));
    call.yieldMemory();
    return true;
  }

  /** Answers a call whose response has waited too long: for memory, or for the registration of a buffer. */
  #giveUp(call: ServerCall): void {
    const why = this.#context.shortage.why(call.shortBytes);
    // Nothing is exhausted while a buffer is registered: the time was too short for it.
    const isExhausted = call.shortBytes !== 0;
    const text = isExhausted
      ? `${call.method}: no memory for the response on the server: ${why}${this.#ofQuota()}`
      : `${call.method}: the deadline passed on the server: ${why}`;
    const status = isExhausted ? Status.RESOURCE_EXHAUSTED : Status.DEADLINE_EXCEEDED;
    this.#send({ handle: call.handle, status, text, metadata: undefined });
    call.over();
  }

  /** What the client's quota may have to do with it. */
  #ofQuota(): string {
    const most = this.#account?.limits.arenaBytesMax;
    if (most === undefined) return '';
    return `; large answers of this session may hold ${most} bytes (option quotas: arenaBytesMax of the server), until it has taken them`;
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

  /**
   * Answers a part of a stream without a message. `header`: that of a part, which is copied when it has to
   * wait.
   */
  answerPart(handle: number, header: Uint8Array | undefined): void {
    if (this.#submit(handle, Status.OK, '', header)) return;
    this.#awaitSlot({ handle, status: Status.OK, text: '', metadata: header?.slice() });
  }

  #send(answer: ShortAnswer): void {
    const { handle, status, text, metadata } = answer;
    if (!this.#submit(handle, status, text, metadata)) this.#awaitSlot(answer);
  }

  #awaitSlot(answer: ServerCall | ShortAnswer): void {
    this.#slotless.add(answer, this.#context.waiters, 'slot');
  }

  /** Returns false when there is no send slot. */
  #submit(handle: number, status: number, text: string, metadata: Uint8Array | undefined): boolean {
    if (this.down) return true;
    const { outgoing } = this.#context;
    const submission = this.#submission;
    submission.call = handle;
    submission.method = status;
    submission.metadata = metadata;
    const result =
      text === ''
        ? outgoing.submit(submission, noMessage, undefined)
        : outgoing.submitText(submission, text, errorTextBytes);
    return result !== noSlot;
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
    const { messageMaxBytes, peer = 'client' } = this.#target;
    return `${call.method}: a response of ${bytes} bytes, but the ${peer} accepts ${messageMaxBytes}; raise messageMaxBytes there`;
  }
}
