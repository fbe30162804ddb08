/**
 * A call of the channel itself that shows whether a server still answers on the data connection. The check of
 * a silent connection (silence-check.ts) makes it, on the channel's JS thread.
 */
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import { pingMethod } from '../call/ping-method.ts';
import { CallExtras } from '../session/call-extras.ts';
import type { ClientLink } from './client-link.ts';

/**
 * `unsent`: the call never left this process, because the server has returned no credit or because no call
 * slot was free. Such a result therefore says nothing about the connection.
 */
export type ProbeEnd = 'answered' | 'unanswered' | 'unsent';

export class DataProbe {
  /** Undefined while the call is in flight. */
  end: ProbeEnd | undefined;
  readonly #cancel = new AbortController();
  readonly #onEnd: (end: ProbeEnd) => void;

  /** Makes the call. `onEnd` is called later, when the call has ended. */
  constructor(link: ClientLink, onEnd: (end: ProbeEnd) => void) {
    this.#onEnd = onEnd;
    const extras = new CallExtras({ signal: this.#cancel.signal }, undefined, true);
    // A call that counts as sent again is not put into the channel's queue when the server has not seen it.
    extras.retried = true;
    ++link.ownCalls;
    const begun = link.session.start(pingMethod(), undefined, 0, extras, (answer) => {
      --link.ownCalls;
      void this.#await(answer);
    });
    if (begun) return;
    --link.ownCalls;
    this.end = 'unsent';
  }

  /** Stops waiting for the answer. `onEnd` follows. */
  cancel(): void {
    this.#cancel.abort();
  }

  async #await(answer: unknown): Promise<void> {
    this.end = await Promise.resolve(answer).then(
      () => 'answered' as const,
      (error: unknown) => this.#endOf(error),
    );
    this.#onEnd(this.end);
  }

  /** Any status of the server is an answer. */
  #endOf(error: unknown): ProbeEnd {
    const known = error instanceof RpcError ? error : undefined;
    if (!this.#cancel.signal.aborted || known?.code !== Status.CANCELLED) return 'answered';
    return known.processed === 'no' ? 'unsent' : 'unanswered';
  }
}
