/**
 * What stands for the sideband of a connection to a client that serves: the channel to that client (peer.ts)
 * hears through it what becomes of the second session, as other channels hear of their connections from their
 * sockets. On the server's JS thread.
 */
import type { Sideband } from '../client/connections/client-link.ts';
import { controlText, type Frame } from '../control/frames.ts';

export class PeerLink implements Sideband {
  onEnd: ((reason: string) => void) | undefined;
  ended: string | undefined;
  readonly #onClosed: (reason: string) => void;
  #onFrame: ((frame: Frame) => void) | undefined;

  /** `onClosed`: told once, when the channel ends the connection or has heard that it is over. */
  constructor(onClosed: (reason: string) => void) {
    this.#onClosed = onClosed;
  }

  deliver(onFrame: (frame: Frame) => void): void {
    this.#onFrame = onFrame;
  }

  /** Nothing is sent: this connection takes no pings, and has no goaway to answer. */
  send(): void {}

  close(reason: string): void {
    if (this.ended !== undefined) return;
    this.ended = reason;
    this.onEnd?.(reason);
    this.#onClosed(reason);
  }

  /** No new calls are made; it is closed with the last one. */
  drain(reason: string): void {
    this.#onFrame?.({ type: 'goaway', reason: controlText(reason) });
  }

  /** It is over, for this reason. */
  end(reason: string): void {
    if (this.#onFrame !== undefined) this.#onFrame({ type: 'bye', reason: controlText(reason) });
    this.close(reason);
  }
}
