/**
 * An open session on which `rdma-rpc ping` makes round trips: pings of the sideband, and calls over the
 * fabric. Each call names a method that no server has. Every server answers such a call with UNIMPLEMENTED,
 * from the same event loop and by the same path as other calls, so the server needs no service for it.
 */
import { releaseContext } from '../../runtime/boundary/contexts.ts';
import { pingMethod } from '../../runtime/client/call/ping-method.ts';
import { ClientSession } from '../../runtime/client/session/client-session.ts';
import type { ClientSessionListener } from '../../runtime/client/session/session-listeners.ts';
import { clockMs } from '../../runtime/clock.ts';
import type { Frame } from '../../runtime/control/frames.ts';
import type { Connection, Opened } from '../../runtime/control/handshake/client-handshake.ts';
import type { Link } from '../../runtime/control/link.ts';
import { type SessionSummary, summaryOf } from '../../runtime/control/session-summary.ts';
import { closeTimeoutMs } from '../../runtime/limits.ts';
import { TooLate } from './advice.ts';
import { noQueue } from './no-queue.ts';
import { toMicroseconds } from './steps.ts';

export class Session {
  /** Whether the server answers pings of the sideband. */
  readonly pings: boolean;
  readonly summary: SessionSummary;
  readonly #connection: Connection;
  readonly #link: Link;
  readonly #timeoutMs: number;
  readonly #calls: ClientSession;
  readonly #down: Promise<void>;
  /** True when the session is broken. `#ended` follows with the reason. */
  #lost = false;
  /** The reason why the session has ended. */
  #ended: string | undefined;
  /** Ends the current round trip with an error. */
  #fail: ((error: Error) => void) | undefined;
  #onPong: (() => void) | undefined;

  /**
   * The constructor must be called in the same event-loop iteration in which the connection was opened,
   * because events arrive from then on.
   */
  constructor({ link, connection }: Opened, timeoutMs: number) {
    this.#connection = connection;
    this.#link = link;
    this.#timeoutMs = timeoutMs;
    this.pings = connection.pings;
    this.summary = summaryOf(connection, connection.server, connection.server.claims);
    const { context, target, inflightMax } = connection;
    let isDown = (): void => undefined;
    this.#down = new Promise((resolve) => {
      isDown = resolve;
    });
    const listener: ClientSessionListener = {
      onCallDone: () => undefined,
      onSessionLost: () => {
        this.#lost = true;
      },
      onSessionDown: (reason) => {
        link.close(reason);
        this.#end(reason);
        releaseContext(context);
        isDown();
      },
      lastWords: () => undefined,
      onConsecutiveErrors: () => undefined,
      onSilence: () => undefined,
      onRejected: () => undefined,
    };
    this.#calls = new ClientSession(context, target, inflightMax, noQueue, listener);
    link.onEnd = (reason) => {
      this.#end(reason);
      context.sessions.close(target.session, reason);
    };
    link.deliver((frame) => this.#onFrame(frame));
    if (link.ended !== undefined) link.onEnd(link.ended);
  }

  /**
   * Makes a round trip over the sideband, and resolves with its time in milliseconds. Rejects with TooLate,
   * or with the reason when the session has ended.
   */
  sideband(): Promise<number> {
    return this.#roundTrip('the sideband', (done) => {
      this.#onPong = done;
      this.#link.send({ type: 'ping' });
    });
  }

  /** Makes a round trip over the fabric, as `sideband` does over the sideband. */
  fabric(): Promise<number> {
    return this.#roundTrip(this.#connection.fabric, (done) => {
      const begun = this.#calls.start(pingMethod(), {}, 0, undefined, (answer) => {
        done();
        // Any status is an answer. The end of the session already fails the round trip, so the error is
        // ignored here.
        Promise.resolve(answer).catch(() => undefined);
      });
      if (!begun) this.#fail?.(new Error('the session takes no call'));
    });
  }

  /** Ends the session. Resolves when the session has ended, or after a time limit. */
  async close(): Promise<void> {
    const reason = 'rdma-rpc ping is done';
    this.#link.close(reason, { type: 'bye', reason });
    // The timer also keeps the process alive.
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, closeTimeoutMs);
    });
    await Promise.race([this.#down, late]);
    clearTimeout(timer);
  }

  #roundTrip(what: string, begin: (done: () => void) => void): Promise<number> {
    return new Promise<number>((resolve, reject) => {
      const text = `no answer over ${what} within ${this.#timeoutMs} ms (--timeout)`;
      const timer = setTimeout(() => this.#fail?.(new TooLate(text)), this.#timeoutMs);
      this.#fail = (error) => {
        clearTimeout(timer);
        this.#fail = undefined;
        reject(error);
      };
      if (this.#ended !== undefined) {
        this.#fail(new Error(this.#ended));
        return;
      }
      const beganMs = clockMs();
      begin(() => {
        const ms = toMicroseconds(clockMs() - beganMs);
        // A call that the end of the session has failed is not an answer.
        if (this.#lost || this.#ended !== undefined) return;
        clearTimeout(timer);
        this.#fail = undefined;
        resolve(ms);
      });
    });
  }

  #end(reason: string): void {
    this.#ended ??= `the session has ended: ${reason}`;
    this.#fail?.(new Error(this.#ended));
  }

  #onFrame(frame: Frame): void {
    if (frame.type === 'pong') this.#onPong?.();
    else if (frame.type === 'bye') this.#link.close(frame.reason);
    else if (frame.type === 'refusal') this.#link.close(frame.message);
    else if (frame.type === 'goaway') this.#link.close('the server is shutting down (goaway)');
  }
}
