/**
 * One connection of a channel: the session and the sideband link that it lives and dies with. Ends itself when the server has
 * asked for it (goaway) and the last call is done.
 */
import { ClientSession, type ClientSessionListener } from '../call/client-session.ts';
import { releaseContext } from '../call/contexts.ts';
import type { Connection } from '../control/connect.ts';
import { controlText, type Frame } from '../control/frames.ts';
import type { Link } from '../control/link.ts';
import { ClientStreams, type ClientStreamsListener } from '../stream/client-streams.ts';

export interface ClientLinkOwner {
  /** A call slot or a send slot may be free. */
  pump(): void;
  /** This connection takes no more calls; those in flight end by themselves. */
  onRetired(link: ClientLink): void;
  onDown(link: ClientLink, reason: string): void;
}

/** What the server meant with a frame that ends the connection. */
function ending(frame: Frame): string {
  if (frame.type === 'bye') return frame.reason;
  return frame.type === 'refusal' ? frame.message : `the server sent an unexpected ${frame.type}`;
}

export class ClientLink implements ClientSessionListener, ClientStreamsListener {
  readonly connection: Connection;
  readonly session: ClientSession;
  readonly streams: ClientStreams;
  readonly #link: Link;
  readonly #owner: ClientLinkOwner;
  /** Calls of the owner that wait; read on the hot path. */
  readonly #waiting: { readonly size: number };
  #draining = false;
  #down = false;

  constructor(
    connection: Connection,
    link: Link,
    owner: ClientLinkOwner,
    waiting: { readonly size: number },
  ) {
    this.connection = connection;
    this.#link = link;
    this.#owner = owner;
    this.#waiting = waiting;
    this.session = new ClientSession(connection.context, connection.target, connection.inflightMax, this);
    const { context, target, inflightMax, streamsMax } = connection;
    this.streams = new ClientStreams(context, target, inflightMax, streamsMax, this);
    this.session.parts = this.streams;
    link.onEnd = (reason) => {
      if (this.#down) return;
      owner.onRetired(this);
      connection.context.closeSession(connection.target.session, reason);
    };
    link.deliver((frame) => this.#onFrame(frame));
    if (link.ended !== undefined) connection.context.closeSession(connection.target.session, link.ended);
  }

  /** Ends the connection now; calls in flight fail. */
  close(reason: string): void {
    this.#link.close(reason, { type: 'bye', reason: controlText(reason) });
  }

  onCallDone(): void {
    if (this.#waiting.size !== 0) this.#owner.pump();
    if (this.#draining && this.session.inFlight === 0) this.close('drained');
  }

  onStreamOpened(): void {
    ++this.session.inFlight;
  }

  onStreamDone(): void {
    --this.session.inFlight;
    this.#owner.pump();
    if (this.#draining && this.session.inFlight === 0) this.close('drained');
  }

  onSessionLost(): void {
    this.#owner.onRetired(this);
  }

  onSessionDown(_session: ClientSession, reason: string): void {
    this.#down = true;
    this.close(reason);
    releaseContext(this.connection.context);
    this.#owner.onDown(this, reason);
  }

  #onFrame(frame: Frame): void {
    if (frame.type === 'goaway') {
      if (this.#draining) return;
      this.#draining = true;
      this.#owner.onRetired(this);
      if (this.session.inFlight === 0) this.close('drained');
    } else {
      this.close(ending(frame));
    }
  }
}
