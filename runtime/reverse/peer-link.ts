/**
 * Replaces the sideband connection of a channel to a client that serves calls (peer.ts). It reports the
 * events of the second session, as the sideband connection of any other channel reports the events of the
 * channel's connection. This file runs on the server's JS thread.
 */
import type { Sideband } from '../client/connections/client-link.ts';
import { controlText, type Frame } from '../control/frames.ts';

export class PeerLink implements Sideband {
  onEnd: ((reason: string) => void) | undefined;
  ended: string | undefined;
  readonly #onClosed: (reason: string) => void;
  #onFrame: ((frame: Frame) => void) | undefined;

  /** `onClosed` is called once, when the channel closes the connection or has learned of its end. */
  constructor(onClosed: (reason: string) => void) {
    this.#onClosed = onClosed;
  }

  deliver(onFrame: (frame: Frame) => void): void {
    this.#onFrame = onFrame;
  }

  /** Sends nothing, because this connection uses no pings and has no goaway to answer. */
  send(): void {}

  close(reason: string): void {
    if (this.ended !== undefined) return;
    this.ended = reason;
    this.onEnd?.(reason);
    this.#onClosed(reason);
  }

  /** Stops new calls, and closes the connection after the last call. */
  drain(reason: string): void {
    this.#onFrame?.({ type: 'goaway', reason: controlText(reason) });
  }

  /** Reports the end of the connection with this reason. */
  end(reason: string): void {
    if (this.#onFrame !== undefined) this.#onFrame({ type: 'bye', reason: controlText(reason) });
    this.close(reason);
  }
}
