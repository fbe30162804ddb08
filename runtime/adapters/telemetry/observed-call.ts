/**
 * Observes a call for telemetry: its start, its status and its end; for streams until the last message.
 * Shared by the interceptors of rdma-rpc/otel and rdma-rpc/prometheus.
 */

import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status, type StatusName, statusName } from '../../core/errors/status.ts';
import { guarded } from '../../core/foreign.ts';
import type { Next, RpcRequest, RpcResponse } from '../../core/interceptor.ts';

/**
 * Upper bounds in seconds: 1, 2, 5 per decade from 1 us to 10 s. Calls take microseconds, which the usual
 * bounds (from 5 ms) cannot distinguish.
 */
export const durationBounds: readonly number[] = [-6, -5, -4, -3, -2, -1, 0]
  .flatMap((exponent) => [1, 2, 5].map((digit) => Number(`${digit}e${exponent}`)))
  .concat(10);

export interface Observer {
  /** Runs a part of the call, so that code called by it, above all the handler, finds a context. */
  run<T>(part: () => T): T;
  /** Called once at the end of the call. `error` is undefined on success. */
  done(status: StatusName, error: unknown): void;
}

/** Returns the status that the peer gets: on a server INTERNAL for errors without a status. */
function statusOf(side: RpcRequest['side'], error: unknown): StatusName {
  if (error instanceof RpcError) return error.codeName;
  return statusName(side === 'server' ? Status.INTERNAL : Status.UNKNOWN);
}

/** Used when creating an observer has failed. */
const noObserver: Observer = { run: (part) => part(), done: () => undefined };

/** Catches errors of an observer: failing telemetry must not fail calls. */
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

/** Carries out a call and reports its end to the observer that `begin` creates. */
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
   * The reader has stopped: on a client by itself, on a server because the call was cancelled, with the
   * signal's reason.
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
