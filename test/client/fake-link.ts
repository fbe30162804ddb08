/**
 * A scripted connection for the tests of silent connections. It answers pings and calls when a test says so.
 */
import { RpcError, Status } from 'rdma-rpc';
import type { SilenceCheck } from '../../runtime/client/connections/silence-check.ts';
import type { CallExtras } from '../../runtime/client/session/call-extras.ts';
import { Silence } from '../../runtime/client/session/silence.ts';
import type { SessionPath } from '../../runtime/native/native.ts';

/** Bytes of a frame that cancels a call. */
const cancelBytes = 48;

/** A scripted connection. */
export class FakeLink {
  ownCalls = 0;
  pings = 0;
  probes = 0;
  /** The counters of the kernel. */
  bytes: SessionPath | undefined;
  /** The reason for which the connection was closed. */
  ended: string | undefined;
  /** Whether a call slot is free. */
  room = true;
  /** The client's state of the call on the data connection when that call is cancelled. */
  processed: 'no' | 'maybe' = 'maybe';
  answer: ((value: unknown) => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly silence = new Silence(() => undefined);

  readonly session = {
    silence: this.silence,
    start: (_: unknown, __: unknown, ___: number, extras: CallExtras, resolve: (value: unknown) => void) => {
      if (!this.room) return false;
      ++this.probes;
      this.answer = (value) => {
        this.answer = undefined;
        resolve(value);
      };
      extras.watch(
        {
          cancelCall: () => {
            // A frame tells the server, and the network has not acknowledged it yet.
            if (this.bytes !== undefined)
              this.bytes = { ...this.bytes, pending: this.bytes.pending + cancelBytes };
            this.fail(new RpcError(Status.CANCELLED, 'cancelled', { processed: this.processed }));
          },
        },
        0,
      );
      return true;
    },
  };

  fail(error: RpcError): void {
    this.answer?.(Promise.reject(error));
  }

  ping(timeoutMs: number, onNone: () => void): void {
    ++this.pings;
    this.#timer = setTimeout(onNone, timeoutMs);
  }

  pong(check: Pick<SilenceCheck, 'onPong'>): void {
    clearTimeout(this.#timer);
    check.onPong();
  }

  path(): SessionPath | undefined {
    return this.bytes;
  }

  close(reason: string): void {
    this.ended = reason;
  }
}

/** Lets the promise of the call settle. */
export const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 5; ++turn) await undefined;
};
export const unimplemented = new RpcError(Status.UNIMPLEMENTED, 'no such method', { processed: 'no' });
