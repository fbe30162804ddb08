/**
 * Observes the start, the status and the end of a call for telemetry. A stream ends with its last message.
 * The interceptors of rdma-rpc/otel and rdma-rpc/prometheus use this file.
 */

import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status, type StatusName, statusName } from '../../core/errors/status.ts';
import { guarded } from '../../core/foreign.ts';
import type { Next, RpcRequest, RpcResponse } from '../../core/interceptor.ts';

/**
 * Upper bounds of the buckets of durations in seconds: 1, 2 and 5 per decade, from 1 us to 10 s. The usual
 * bounds begin at 5 ms, but calls take microseconds.
 */
export const durationBounds: readonly number[] = [-6, -5, -4, -3, -2, -1, 0]
  .flatMap((exponent) => [1, 2, 5].map((digit) => Number(`${digit}e${exponent}`)))
  .concat(10);

export interface Observer {
  /**
   * Runs a part of the call in the observer's context, so that code called by this part, such as the handler,
   * finds the context.
   */
  run<T>(part: () => T): T;
  /** Runs once, at the end of the call. `error` is undefined on success. */
  done(status: StatusName, error: unknown): void;
}

/**
 * Returns the status of an error. An error without a status becomes INTERNAL on a server, because the client
 * gets this status. On a client such an error becomes UNKNOWN.
 */
function statusOf(side: RpcRequest['side'], error: unknown): StatusName {
  if (error instanceof RpcError) return error.codeName;
  return statusName(side === 'server' ? Status.INTERNAL : Status.UNKNOWN);
}

/** A call gets this observer when creating its own observer has failed. */
const noObserver: Observer = { run: (part) => part(), done: () => undefined };

/** Catches errors of an observer, so that failing telemetry does not make calls fail. */
class Guarded implements Observer {
  readonly #observer: Observer;

  constructor(begin: () => Observer) {
    let observer = noObserver;
    guarded('the telemetry of a call', () => {
      observer = begin();
    });
    this.#observer = observer;
  }

  run<T>(part: () => T): T {
    let ran: { result: T } | { thrown: unknown } | undefined;
    const once = (): T => {
      try {
        const result = part();
        ran = { result };
        return result;
      } catch (thrown) {
        ran = { thrown };
        throw thrown;
      }
    };
    try {
      return this.#observer.run(once);
    } catch (fault) {
      if (ran === undefined) {
        guarded('the telemetry of a call', () => {
          throw fault;
        });
        return part();
      }
      if ('thrown' in ran) throw ran.thrown;
      return ran.result;
    }
  }

  done(status: StatusName, error: unknown): void {
    guarded('the telemetry of a call', () => this.#observer.done(status, error));
  }
}

/** Carries out a call, and reports the end of the call to the observer that `begin` creates. */
export async function observedCall(
  next: Next,
  request: RpcRequest,
  begin: () => Observer,
): Promise<RpcResponse> {
  const observer = new Guarded(begin);
  let response: RpcResponse;
  try {
    response = await observer.run(() => next(request));
  } catch (error) {
    observer.done(statusOf(request.side, error), error);
    throw error;
  }
  if (!response.stream) {
    observer.done('OK', undefined);
    return response;
  }
  return { ...response, message: new ObservedMessages(response.message, request, observer) };
}

class ObservedMessages implements AsyncIterableIterator<unknown> {
  readonly #messages: AsyncIterator<unknown>;
  readonly #request: RpcRequest;
  readonly #observer: Observer;
  #over = false;

  constructor(messages: AsyncIterable<unknown>, request: RpcRequest, observer: Observer) {
    this.#messages = messages[Symbol.asyncIterator]();
    this.#request = request;
    this.#observer = observer;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<unknown>> {
    try {
      const result = await this.#observer.run(() => this.#messages.next());
      if (result.done) this.#done('OK', undefined);
      return result;
    } catch (error) {
      this.#done(statusOf(this.#request.side, error), error);
      throw error;
    }
  }

  /**
   * Runs when the reader has stopped. On a client, the call has stopped by itself. On a server, the call was
   * cancelled, for the reason of the signal.
   */
  async return(value?: unknown): Promise<IteratorResult<unknown>> {
    const reason: unknown = this.#over ? undefined : this.#request.signal?.reason;
    this.#done(reason instanceof RpcError ? reason.codeName : 'CANCELLED', undefined);
    return (await this.#messages.return?.(value)) ?? { done: true, value };
  }

  #done(status: StatusName, error: unknown): void {
    if (this.#over) return;
    this.#over = true;
    this.#observer.done(status, error);
  }
}
