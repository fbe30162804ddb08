/**
 * The state of an intercepted call that all copies of its request share: its guard, its callbacks to the
 * caller, and the promise of the innermost call. intercepted-call.ts creates this object for each call, on
 * the channel's JS thread.
 */
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import { heard, textOf } from '../../core/foreign.ts';
import type { ChainedCall, RpcResponse } from '../../core/interceptor.ts';
import type { Metadata } from '../../core/metadata.ts';
import type { CallOptions } from '../../core/types.ts';
import { CallGuard } from './call-guard.ts';

export class InterceptedState implements ChainedCall {
  given: Promise<RpcResponse> | undefined;
  carried: Promise<RpcResponse> | undefined;
  /** The header of the last attempt. */
  header: Metadata | undefined;
  /** The time limit of the call in ms. Negative means no limit. */
  readonly timeoutMs: number;
  readonly guard: CallGuard;
  readonly options: CallOptions;
  readonly #path: string;
  #toldHeader = false;
  #toldTrailer = false;

  constructor(options: CallOptions, path: string, timeoutMs: number) {
    this.timeoutMs = timeoutMs;
    this.guard = new CallGuard(path, timeoutMs, options);
    this.options = options;
    this.#path = path;
  }

  /**
   * Returns whether every interceptor has returned the promise of its own `next`, down to the innermost call.
   * In this case no interceptor can keep the caller waiting: the innermost call has the same time limit and
   * signals, and ends by itself.
   */
  isCarriedBy(result: unknown): boolean {
    return this.carried !== undefined && result === this.carried && this.guard.bound;
  }

  /** Passes the header with the interceptors' changes to the caller, once. */
  tellHeader(header: Metadata): void {
    if (this.#toldHeader) return;
    this.#toldHeader = true;
    this.#tell(this.options.onHeader, header);
  }

  tellTrailer(trailer: Metadata): void {
    if (this.#toldTrailer) return;
    this.#toldTrailer = true;
    this.#tell(this.options.onTrailer, trailer);
  }

  /**
   * Calls a callback of the caller. A callback that throws makes the call fail, as it does without
   * interceptors.
   */
  #tell(callback: ((metadata: Metadata) => void) | undefined, metadata: Metadata): void {
    if (callback === undefined || metadata.size === 0) return;
    try {
      heard('onHeader or onTrailer', callback(metadata));
    } catch (cause) {
      const why = textOf(cause);
      const text = `${this.#path}: the response cannot be used: ${why}`;
      throw new RpcError(Status.INTERNAL, text, { processed: 'yes', cause });
    }
  }

  tellOfFailure(error: unknown): void {
    try {
      if (this.header !== undefined) this.tellHeader(this.header);
      if (error instanceof RpcError) this.tellTrailer(error.trailer);
    } catch {
      // The error of the callback is ignored, because the caller gets the call's own error, which came first.
    }
  }
}
