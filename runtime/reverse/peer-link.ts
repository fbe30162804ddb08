/**
 * Takes the place of the control socket for the channel to a client that serves (peer.ts): it tells that
 * channel when the second session drains or ends, as other channels learn it from their sockets. Created by
 * RpcPeer; used on the server's JS thread.
 */
import type { Sideband } from '../client/connections/client-link.ts';
import { controlText, type Frame } from '../control/frames.ts';

export class PeerLink implements Sideband {
  onEnd: ((reason: string) => void) | undefined;
  ended: string | undefined;
  readonly #onClosed: (reason: string) => void;
  #onFrame: ((frame: Frame) => void) | undefined;

  /** `onClosed` is called once: when the channel closes the connection, or after end(). */
  constructor(onClosed: (reason: string) => void) {
    this.#onClosed = onClosed;
  }

  deliver(onFrame: (frame: Frame) => void): void {
    this.#onFrame = onFrame;
  }

  /** Does nothing: the channel sends no pings on this connection, and no answer to a goaway. */
  send(): void {}

  close(reason: string): void {
    if (this.ended !== undefined) return;
    this.ended = reason;
    this.onEnd?.(reason);
    this.#onClosed(reason);
  }

  /** Makes the channel stop new calls, and close the connection after the last answer. */
  drain(reason: string): void {
    this.#onFrame?.({ type: 'goaway', reason: controlText(reason) });
  }

  /** Ends the connection for this reason. */
  end(reason: string): void {
    if (this.#onFrame !== undefined) this.#onFrame({ type: 'bye', reason: controlText(reason) });
    this.close(reason);
  }
}
