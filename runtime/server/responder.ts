/**
 * Sends the answers of a server session: responses, errors, refusals. Answers wait here when no send slot is
 * free, when the arena has no room for a response that must be copied, or while a large buffer is being
 * registered. The session's limit of calls in flight also limits the number of waiting answers. A waiting
 * answer holds only memory of the application. A ServerSession owns this object and uses it on its JS thread.
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

/** An error, or the response to a part of a stream. */
interface ShortAnswer {
  readonly handle: number;
  /** Status code, with the `notRun` bit. */
  readonly status: number;
  readonly text: string;
  readonly metadata: Uint8Array | undefined;
}

/**
 * Returns the time at which a response stops waiting for memory. This time is before the caller's deadline,
 * because a caller ignores answers to small calls after its deadline. The last tenth of the remaining time is
 * left for the error, which names the missing resource.
 */
function lastMoment(call: ServerCall, nowMs: number): number {
  const limitMs = nowMs + memoryWaitMs;
  if (call.deadlineMs === 0) return limitMs;
  const leftMs = Math.max(0, call.deadlineMs - nowMs);
  return Math.min(limitMs, call.deadlineMs - Math.min(tellingMsMax, leftMs / 10));
}

/**
 * Returns a status code, with the `notRun` bit for a call whose handler has not run. UNAVAILABLE with this
 * bit says that the server is leaving, so it gets a mark in its trailer instead (errorMetadata).
 */
function statusWord(call: ServerCall, code: number): number {
  return call.notRun && code !== Status.UNAVAILABLE ? code | notRun : code;
}

export class Responder {
  /** True when the session has ended, so that no call can be answered any more. */
  down = false;

  readonly #context: FabricContext;
  readonly #target: Target;
  readonly #submission: Submission;
  readonly #onHandlerError: OnHandlerError;
  /** Account of the client, if the server has quotas. */
  readonly #account: Account | undefined;
  /** Answers that wait for a send slot. */
  readonly #slotless = new ResourceQueue<ServerCall | ShortAnswer>({
    retry: (answer) => {
      if (answer instanceof ServerCall) this.#answerLater(answer);
      else this.#send(answer);
    },
  });
  /** Responses that wait for memory. */
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

  /**
   * Runs when the client has cancelled a call whose handler has answered. The response then stops waiting for
   * memory.
   */
  forget(handle: number): void {
    for (const call of this.#short) {
      if (call.handle !== handle) continue;
      call.over();
      this.#short.delete(call);
      return;
    }
  }

  /** Answers a call of a one-way method, before its handler runs. */
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

  /** Counts the bytes of the last submission. Runs when the submission has succeeded. */
  sent(): void {
    this.#account?.spend(this.#context.outgoing.submittedBytes);
  }

  /**
   * Answers with the error that a handler has thrown. `failed` is the text for the caller when the error is
   * not an RpcError.
   */
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
      status: statusWord(call, known?.code ?? Status.INTERNAL),
      text: known?.rawMessage ?? failed(call.method),
      metadata: this.#errorMetadata(call, known),
    });
  }

  /**
   * Answers a call whose deadline has passed before its handler has finished. A client with its own deadline
   * may report the same error itself, before this answer arrives. Header and trailer of the handler are
   * therefore left out in both cases.
   */
  outOfTime(call: ServerCall, reason: RpcError): void {
    call.finish();
    if (this.down || call.accepted) return;
    this.#send({
      handle: call.handle,
      status: statusWord(call, reason.code),
      text: reason.rawMessage,
      metadata: call.limited ? this.#errorMetadata(call, reason) : undefined,
    });
  }

  /**
   * Reports an error of a handler to the application. It does not report an RpcError, because that is the
   * handler's answer, nor an error that is a consequence of the aborted call.
   */
  report(call: ServerCall, error: unknown): void {
    const meant = call.aborted !== undefined && abortCode(error) !== undefined;
    // An RpcError of a one-way method is reported, because the caller does not get it.
    if (error instanceof RpcError ? call.accepted : !meant) this.#onHandlerError(error, call.method);
  }

  /** Answers a request whose handler is not run. */
  refuse(handle: number, { status, text }: Refusal): void {
    this.#send({ handle, status: status | notRun, text, metadata: undefined });
  }

  /** Lets the response wait for memory. Returns false when waiting cannot help. */
  #awaitMemory(call: ServerCall, response: unknown): boolean {
    const { native, outgoing, waiters, lacking } = this.#context;
    const { shortBytes } = outgoing.bulk;
    // If no lease holds memory, the operating system has denied the memory. If `shortBytes` is 0, the
    // response waits for a registration, which ends by itself.
    if (shortBytes > native.arenaBytes) return false;
    if (shortBytes !== 0 && native.stats().arenaLeasedBlocks === 0) return false;
    call.shortBytes = shortBytes;
    if (this.#short.trying !== call) call.response = response;
    this.#short.add(call, waiters, lacking, lastMoment(call, turnNow()));
    call.yieldMemory();
    return true;
  }

  /** Answers a call whose response has waited too long for memory or for the registration of a buffer. */
  #giveUp(call: ServerCall): void {
    const why = this.#context.shortage.why(call.shortBytes);
    // While a buffer is being registered, memory is not exhausted. The only possible cause is then a deadline
    // that was too short.
    const isExhausted = call.shortBytes !== 0;
    const text = isExhausted
      ? `${call.method}: no memory for the response on the server: ${why}${this.#ofQuota()}`
      : `${call.method}: the deadline passed on the server: ${why}`;
    const status = isExhausted ? Status.RESOURCE_EXHAUSTED : Status.DEADLINE_EXCEEDED;
    this.#send({ handle: call.handle, status, text, metadata: undefined });
    call.over();
  }

  /** Returns a text about the client's quota, if the quota may be the cause. */
  #ofQuota(): string {
    const most = this.#account?.limits.arenaBytesMax;
    if (most === undefined) return '';
    return `; large responses of one session hold at most ${most} bytes until the client has received them (option quotas: arenaBytesMax of the server)`;
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

  /**
   * Returns the metadata of a response. When the metadata is too large, throws the error with which to answer
   * instead.
   */
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

  /**
   * Returns the metadata of an error. Parts that are too large are left out, because the status matters more,
   * and are reported to the application.
   */
  #errorMetadata(call: ServerCall, error: RpcError | undefined): Uint8Array | undefined {
    const roomBytes = this.#target.eagerBytes - errorTextBytes;
    return errorMetadata(call, error, roomBytes, (cut) => this.#onHandlerError(cut, call.method));
  }

  /**
   * Answers a part of a stream without a message. `header` is a part header. It is copied when the answer has
   * to wait.
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

  /** Submits an answer. Returns false when no send slot is free. */
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

  /** Returns the reason why a response was not sent, for a `reason` of native code. */
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
    return `${call.method}: a response of ${bytes} bytes, but the ${peer} accepts ${messageMaxBytes}; raise messageMaxBytes of the ${peer}`;
  }
}
