/**
 * A client that serves calls of its server, as the server sees it: the calls that it has not answered. Made
 * by Peers when the client opens its stream; on the server's JS thread.
 */

import { deadlines, turnNow } from '../boundary/time/deadlines.ts';
import type { DeadlineOwner } from '../boundary/time/timer-wheel.ts';
import { callExtras, callTimeoutMs } from '../client/call/call-options.ts';
import type { ClientMethod } from '../client/call/client-method.ts';
import type { CallExtras, CallPlace } from '../client/session/call-extras.ts';
import { failCall, refusedCall } from '../core/errors/failing.ts';
import { failure, requestFault, tooLarge, unavailable } from '../core/errors/failure.ts';
import { RpcError } from '../core/errors/rpc-error.ts';
import { errorCode, Status } from '../core/errors/status.ts';
import { takeDetails } from '../core/errors/status-details.ts';
import { textOf } from '../core/foreign.ts';
import { decodeResponseMetadata, metadataFault } from '../core/metadata-wire.ts';
import type { PeerInfo } from '../core/peer.ts';
import type { CallOptions } from '../core/types.ts';
import { Reason } from '../native/native.ts';
import { onRefused, type Refusable, type Refused } from '../stream/refused.ts';
import type { Answer, CallInit } from './gen/reverse.rdma.ts';
import { reverseCalls, reverseQueueBytes } from './limits.ts';
import { MessageQueue } from './message-queue.ts';
import type { Peer } from './reverse-type.ts';

interface Pending {
  /** What is sent for it. */
  readonly message: CallInit;
  readonly method: ClientMethod;
  readonly extras: CallExtras | undefined;
  readonly resolve: (response: unknown) => void;
  /** -1: none. */
  timer: number;
}

const notForPeers = ['into', 'retry', 'hedging'] as const;
const nothing = new Uint8Array(0);
const numberMax = 0xffff_ffff;

export class RpcPeer implements Peer, CallPlace, DeadlineOwner {
  readonly name: string;
  readonly info: PeerInfo;
  /** What the client is sent. */
  readonly calls: MessageQueue<CallInit & Refusable> = new MessageQueue();
  readonly #pending = new Map<number, Pending>();
  #number = 0;
  #gone = '';

  constructor(info: PeerInfo) {
    this.info = info;
    this.name = String(info);
  }

  toString(): string {
    return this.name;
  }

  get connected(): boolean {
    return this.#gone === '';
  }

  call(method: ClientMethod, request: unknown, options: CallOptions = {}): Promise<unknown> {
    try {
      return this.#start(method, request, options);
    } catch (error) {
      return refusedCall(error);
    }
  }

  #start(method: ClientMethod, request: unknown, options: CallOptions): Promise<unknown> {
    const { path } = method;
    const timeoutMs = callTimeoutMs(options, method.timeoutMs);
    const extras = callExtras(path, options);
    const unfit = notForPeers.find((name) => options[name] !== undefined && options[name] !== false);
    if (unfit !== undefined) throw new TypeError(`${path}: a call to a client takes no \`${unfit}\``);
    if (timeoutMs === 0) throw failure(Reason.deadline, path, 'no', 'no time was left');
    if (this.#gone !== '') throw unavailable(`${path}: ${this.#gone}`);
    if (this.#pending.size >= reverseCalls) {
      const text = `${path}: ${reverseCalls} calls to this client wait for their answers`;
      throw new RpcError(Status.RESOURCE_EXHAUSTED, text, { processed: 'no' });
    }
    const encoded = this.#encode(method, request);
    const waitingBytes = this.calls.bytes;
    if (waitingBytes > 0 && waitingBytes + encoded.byteLength > reverseQueueBytes) {
      const text = `${path}: ${waitingBytes} bytes of calls to this client wait for it to read them, and with this one there would be more than ${reverseQueueBytes}`;
      throw new RpcError(Status.RESOURCE_EXHAUSTED, text, { processed: 'no' });
    }
    const number = this.#nextNumber();
    const message: CallInit & Refusable = {
      number,
      method: method.id,
      timeoutUs: timeoutMs < 0 ? 0n : BigInt(Math.max(1, Math.floor(timeoutMs * 1000))),
      metadata: extras?.metadata ?? nothing,
      message: encoded,
      [onRefused]: (why) => this.#onRefused(number, why),
    };
    this.calls.push(message);
    const timer = timeoutMs < 0 ? -1 : deadlines.add(turnNow() + timeoutMs, this, number);
    return new Promise((resolve) => {
      this.#pending.set(number, { message, method, extras, resolve, timer });
      extras?.watch(this, number);
    });
  }

  onAnswer(answer: Answer): void {
    const pending = this.#take(answer.number);
    // Given up meanwhile, or never made.
    if (pending === undefined) return;
    const { method, extras, resolve } = pending;
    // A copy: that of the answer may lie in memory which is given back now.
    const metadata = answer.metadata.slice();
    try {
      const well = metadataFault(metadata, 0, metadata.byteLength, true) === '';
      const told = well ? decodeResponseMetadata(metadata, 0, metadata.byteLength) : undefined;
      if (told !== undefined) extras?.tell(told);
      if (answer.status !== Status.OK) {
        const trailer = told?.trailer;
        const processed = answer.notRun ? 'no' : 'yes';
        const options = { trailer, details: takeDetails(trailer), processed } as const;
        throw new RpcError(errorCode(answer.status), answer.text, options);
      }
      resolve(method.responseType.decode(answer.message));
    } catch (cause) {
      if (cause instanceof RpcError) {
        failCall(resolve, cause);
        return;
      }
      const why = textOf(cause);
      const text = `${method.path}: the response cannot be used: ${why}`;
      failCall(resolve, new RpcError(Status.INTERNAL, text, { processed: 'yes', cause }));
    }
  }

  /** A signal has fired. */
  cancelCall(number: number, reason: number): void {
    const pending = this.#take(number);
    if (pending === undefined) return;
    // To a client that does not read, calls that were given up must not pile up.
    const unsent = this.calls.remove(pending.message);
    if (!unsent) {
      const cancel = reason === Reason.deadline ? Status.DEADLINE_EXCEEDED : Status.CANCELLED;
      this.calls.push({ number, cancel });
    }
    const { method, extras } = pending;
    const processed = unsent ? 'no' : 'maybe';
    failCall(pending.resolve, failure(reason, method.path, processed, '', extras?.cause));
  }

  /** The stream cannot carry the call: it is too large, or there is no memory for it. */
  #onRefused(number: number, { reason, bytes, maxBytes }: Refused): void {
    const pending = this.#take(number);
    if (pending === undefined) return;
    const { path } = pending.method;
    const error =
      reason === Reason.tooLarge ? tooLarge(path, bytes, maxBytes, 'client') : failure(reason, path, 'no');
    failCall(pending.resolve, error);
  }

  onDeadline(number: number): void {
    const pending = this.#pending.get(number);
    if (pending !== undefined) pending.timer = -1;
    this.cancelCall(number, Reason.deadline);
  }

  /** It gets no more calls, and leaves when it has answered those that it has. */
  drain(why: string): void {
    this.#gone = why;
    if (this.#pending.size === 0) this.calls.end();
  }

  /** It serves no more. */
  end(why: string): void {
    this.#gone = why;
    this.calls.end();
    for (const number of [...this.#pending.keys()]) {
      const pending = this.#take(number);
      if (pending !== undefined)
        failCall(pending.resolve, unavailable(`${pending.method.path}: ${why}`, 'maybe'));
    }
  }

  #encode(method: ClientMethod, request: unknown): Uint8Array {
    try {
      const bytes = method.requestType.encode(request);
      if (method.check.left > 0) method.check.look(request);
      return bytes;
    } catch (cause) {
      throw requestFault(method.path, cause);
    }
  }

  #nextNumber(): number {
    do this.#number = this.#number === numberMax ? 1 : this.#number + 1;
    while (this.#pending.has(this.#number));
    return this.#number;
  }

  #take(number: number): Pending | undefined {
    const pending = this.#pending.get(number);
    if (pending === undefined) return undefined;
    this.#pending.delete(number);
    if (pending.timer !== -1) deadlines.remove(pending.timer);
    pending.extras?.unwatch();
    if (this.#gone !== '' && this.#pending.size === 0) this.calls.end();
    return pending;
  }
}
