/**
 * One connection of a channel: the session and the sideband link that it lives and dies with. Ends itself
 * when the server has asked for it (goaway) and the last call is done.
 */

import { releaseContext } from '../../boundary/contexts.ts';
import { controlText, type Frame, type Served, type Serving, type Unserve } from '../../control/frames.ts';
import type { Connection } from '../../control/handshake/client-handshake.ts';
import type { Link } from '../../control/link.ts';
import { levelNumber, levelOf } from '../../control/security-level.ts';
import { lastWordsMs } from '../../limits.ts';
import type { CallQueue } from '../queue/call-queue.ts';
import { ClientSession } from '../session/client-session.ts';
import type { ClientSessionListener } from '../session/session-listeners.ts';
import { ClientStreams, type ClientStreamsListener } from '../stream/client-streams.ts';

export interface ClientLinkOwner {
  /** This connection takes no more calls; those in flight end by themselves. */
  onRetired(link: ClientLink): void;
  onDown(link: ClientLink): void;
  onPong(link: ClientLink): void;
  /** So many bad answers have come in a row as the link was told to report. */
  onStrikes(link: ClientLink): void;
}

/** What a connection needs of its sideband: that of a dialled one, or what stands for it (reverse/). */
export type Sideband = Pick<Link, 'onEnd' | 'ended' | 'send' | 'deliver' | 'close'>;

/** The calls that this side serves to the server, over the second session of the connection (reverse/). */
export interface ConnectionServing {
  onFrame(frame: Serving | Served | Unserve): void;
  /** This side wants the connection to end: with the last call of either direction. */
  drain(reason: string): void;
  /** The connection is over. */
  end(reason: string): void;
}

/** What the server meant with a frame that ends the connection and is no bye. */
function ending(frame: Frame): string {
  return frame.type === 'refusal' ? frame.message : `the server sent an unexpected ${frame.type}`;
}

export class ClientLink implements ClientSessionListener, ClientStreamsListener {
  readonly connection: Connection;
  readonly session: ClientSession;
  readonly #link: Sideband;
  readonly #owner: ClientLinkOwner;
  readonly #queue: CallQueue;
  readonly #waiting: { readonly size: number };
  /** Undefined while this side serves no calls on the connection. */
  #serving: ConnectionServing | undefined;
  #streams: ClientStreams | undefined;
  #draining = false;
  #down = false;
  #pongTimer: NodeJS.Timeout | undefined;
  /** What the server has said of the end. */
  #said: string | undefined;
  #tellWords: ((said: string | undefined) => void) | undefined;
  #wordsTimer: NodeJS.Timeout | undefined;

  /** `strikesMax`: bad answers in a row to report, 0 for none. */
  constructor(
    connection: Connection,
    link: Sideband,
    queue: CallQueue,
    owner: ClientLinkOwner,
    strikesMax = 0,
  ) {
    this.connection = connection;
    this.#link = link;
    this.#owner = owner;
    this.#queue = queue;
    this.#waiting = queue.waiting;
    const { context, target, inflightMax } = connection;
    this.session = new ClientSession(context, target, inflightMax, queue, this);
    const level = levelNumber(levelOf(connection.server.security, connection.protection));
    context.native.nameSession(target.session, String(connection.server), level);
    this.session.tally.strikesMax = strikesMax;
    link.onEnd = (reason) => {
      this.#serving?.end(reason);
      if (this.#down) return;
      this.lost();
      connection.context.sessions.close(connection.target.session, reason);
      this.#heard();
    };
    link.deliver((frame) => this.#onFrame(frame));
    if (link.ended !== undefined) connection.context.sessions.close(connection.target.session, link.ended);
  }

  /** Made when the first stream comes, as most sessions have none. */
  get streams(): ClientStreams {
    if (this.#streams === undefined) {
      const { context, target, inflightMax, streamsMax } = this.connection;
      this.#streams = new ClientStreams(context, target, inflightMax, streamsMax, this);
      this.session.parts = this.#streams;
    }
    return this.#streams;
  }

  /** Ends the connection now; calls in flight fail. */
  close(reason: string): void {
    this.#link.close(reason, { type: 'bye', reason: controlText(reason) });
  }

  /** Why it has ended. */
  get ended(): string | undefined {
    return this.#link.ended;
  }

  /** The server answers pings. */
  get pings(): boolean {
    return this.connection.pings;
  }

  /** Asks the server for a sign of life, which goes to `onPong`; without one the connection ends. */
  ping(timeoutMs: number): void {
    this.#pongTimer = setTimeout(() => this.close(`no answer to a ping within ${timeoutMs} ms`), timeoutMs);
    this.#link.send({ type: 'ping' });
  }

  get unserved(): boolean {
    return this.session.unserved;
  }

  /** It takes no more calls. */
  get draining(): boolean {
    return this.#draining;
  }

  /** Takes no more calls, and ends with the last one. */
  drain(): void {
    if (this.#draining) return;
    this.#drain();
    this.#serving?.drain('the client leaves this connection');
  }

  #drain(): void {
    this.#draining = true;
    this.#owner.onRetired(this);
    this.#closeDrained();
  }

  /** When the last call has ended, of either direction. */
  #closeDrained(): void {
    if (this.#draining && this.session.inFlight === 0 && this.#serving === undefined) this.close('drained');
  }

  /** This side serves calls on the connection. */
  serve(serving: ConnectionServing): void {
    this.#serving = serving;
  }

  /** It serves no more, unless others do by now. */
  serveNoMore(serving: ConnectionServing): void {
    if (this.#serving !== serving) return;
    this.#serving = undefined;
    this.#closeDrained();
  }

  /** Frames of that go here. */
  send(frame: Frame): void {
    this.#link.send(frame);
  }

  /**
   * The server has asked for it. The second time only says that it takes no more; what it has not taken comes
   * back, call by call, as not run.
   */
  #leave(): void {
    if (this.#draining) return;
    // The server ends its calls to this side by itself.
    this.#drain();
    const { calls, inFlight } = this.session;
    if (inFlight > 0 && this.connection.answersGoaway) this.#link.send({ type: 'leaving', calls });
  }

  onCallDone(): void {
    if (this.#waiting.size !== 0) this.#queue.pumpAfter(this.connection.context);
    this.#closeDrained();
  }

  onStreamAnswer(status: number): void {
    this.session.tally.count(status);
  }

  onStreamOpening(): void {
    ++this.session.inFlight;
    ++this.session.calls;
  }

  onStreamUnopened(): void {
    --this.session.calls;
    --this.session.inFlight;
    this.#closeDrained();
  }

  onStreamDone(): void {
    --this.session.inFlight;
    this.#queue.pump();
    this.#closeDrained();
  }

  /** The end of the connection, whichever part of it is noticed first. */
  lost(): void {
    this.session.lost();
  }

  onSessionLost(): void {
    this.#owner.onRetired(this);
  }

  lastWords(): Promise<string | undefined> | undefined {
    if (this.#link.ended !== undefined) return undefined;
    return new Promise((resolve) => {
      this.#tellWords = resolve;
      this.#wordsTimer = setTimeout(() => this.#heard(), lastWordsMs);
    });
  }

  #heard(): void {
    clearTimeout(this.#wordsTimer);
    this.#tellWords?.(this.#said);
    this.#tellWords = undefined;
  }

  onSessionDown(reason: string): void {
    this.#down = true;
    clearTimeout(this.#pongTimer);
    this.close(reason);
    releaseContext(this.connection.context);
    this.#owner.onDown(this);
  }

  onStrikes(): void {
    this.#owner.onStrikes(this);
  }

  onTurnedAway(): void {
    // It has said that it goes, and the news is late.
    this.drain();
  }

  #onFrame(frame: Frame): void {
    if (frame.type === 'goaway') {
      this.#leave();
    } else if (frame.type === 'pong') {
      clearTimeout(this.#pongTimer);
      this.#owner.onPong(this);
    } else if (frame.type === 'serving' || frame.type === 'served' || frame.type === 'unserve') {
      // One that has crossed the end of it is nobody's.
      this.#serving?.onFrame(frame);
    } else if (frame.type === 'bye') {
      // A peer that sent `bye` no longer reads.
      this.#said = frame.reason;
      this.#link.close(frame.reason);
    } else {
      // It has not read this side's `ready`, and no request before it.
      if (frame.type === 'refusal') this.session.unserved = true;
      this.#said = ending(frame);
      this.close(ending(frame));
    }
  }
}
