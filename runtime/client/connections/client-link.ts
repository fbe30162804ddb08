/**
 * One connection of a channel: the session and its sideband connection, which end together. The connection
 * closes itself when the server has sent a goaway and the last call has finished.
 */

import { releaseContext } from '../../boundary/contexts.ts';
import {
  byeOfSession,
  controlText,
  type Frame,
  type MemoryAccepted,
  type MemoryEnd,
  type Served,
  type Serving,
  type Unserve,
} from '../../control/frames.ts';
import type { Connection } from '../../control/handshake/client-handshake.ts';
import type { Link } from '../../control/link.ts';
import { levelNumber, levelOf } from '../../control/security-level.ts';
import { lastWordsMs } from '../../limits.ts';
import type { SessionPath } from '../../native/native.ts';
import type { LoadWeight } from '../balancing/load-weight.ts';
import type { CallQueue } from '../queue/call-queue.ts';
import { ClientSession } from '../session/client-session.ts';
import type { ClientSessionListener } from '../session/session-listeners.ts';
import { ClientStreams, type ClientStreamsListener } from '../stream/client-streams.ts';

export interface ClientLinkOwner {
  /** Runs when the connection takes no more calls; calls in flight continue. */
  onRetired(link: ClientLink): void;
  onDown(link: ClientLink): void;
  onPong(link: ClientLink): void;
  /** Runs when the configured number of consecutive errors is reached. */
  onConsecutiveErrors(link: ClientLink): void;
  /**
   * Runs when calls end at their deadlines and the server sends nothing. It may be called several times.
   */
  onSilence(link: ClientLink): void;
}

/**
 * The functions of the sideband connection that this file needs. A control link or reverse/ implements them.
 */
export type Sideband = Pick<Link, 'onEnd' | 'ended' | 'send' | 'deliver' | 'close'>;

/** The second session of the connection, on which this side serves calls of the server (reverse/). */
export interface ConnectionServing {
  onFrame(frame: Serving | Served | Unserve): void;
  /**
   * Runs when this side drains the connection. The connection then ends with the last call of either
   * direction.
   */
  drain(reason: string): void;
  /** Runs when the connection has ended. */
  end(reason: string): void;
}

/** The queue pair of a connection for remote memory (memory/). */
export interface ConnectionMemory {
  onFrame(frame: MemoryAccepted | MemoryEnd): void;
  /** Runs when the connection has ended. */
  end(reason: string): void;
}

/** Length of a peer's name in the counters page; it leaves room for a note. */
const shownPeer = 100;

/** Returns the reason for a frame other than bye that ends the connection. */
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
  /** Undefined when this side serves no calls on the connection. */
  #serving: ConnectionServing | undefined;
  /** The queue pair for remote memory; undefined without one. */
  memory: ConnectionMemory | undefined;
  /** The weight from the server's load reports; undefined when the policy uses no load reports. */
  loads: LoadWeight | undefined;
  /**
   * Number of streams and calls of the channel itself on this connection, such as the stream of the health
   * check.
   */
  ownCalls = 0;
  /** This is true when the connection was closed before the channel used it. */
  unneeded = false;
  #streams: ClientStreams | undefined;
  #stale = false;
  #draining = false;
  #down = false;
  #pongTimer: NodeJS.Timeout | undefined;
  /** The reason that the server has given for the end of the connection. */
  #said: string | undefined;
  #tellWords: ((said: string | undefined) => void) | undefined;
  #wordsTimer: NodeJS.Timeout | undefined;

  /** After `consecutiveErrorsMax` consecutive errors, `onConsecutiveErrors` is called; 0 for never. */
  constructor(
    connection: Connection,
    link: Sideband,
    queue: CallQueue,
    owner: ClientLinkOwner,
    consecutiveErrorsMax = 0,
  ) {
    this.connection = connection;
    this.#link = link;
    this.#owner = owner;
    this.#queue = queue;
    this.#waiting = queue.waiting;
    const { context, target, inflightMax } = connection;
    this.session = new ClientSession(context, target, inflightMax, queue, this);
    this.#name();
    this.session.tally.consecutiveErrorsMax = consecutiveErrorsMax;
    link.onEnd = (reason) => {
      this.#serving?.end(reason);
      this.memory?.end(reason);
      if (this.#down) return;
      this.lost();
      connection.context.sessions.close(connection.target.session, reason);
      this.#heard();
    };
    link.deliver((frame) => this.#onFrame(frame));
    if (link.ended !== undefined) connection.context.sessions.close(connection.target.session, link.ended);
  }

  /**
   * Names the session in the counters page, which `rdma-rpc top` shows. A narrow terminal shows only the end
   * of a name, and the page cuts a long name.
   */
  #name(): void {
    const { context, target, server, protection } = this.connection;
    const peer = this.#stale ? `${String(server).slice(0, shownPeer)}, stale` : String(server);
    context.native.nameSession(target.session, peer, levelNumber(levelOf(server.security, protection)));
  }

  /** Marks the address as one from an earlier answer of a resolver whose last query has failed. */
  set stale(stale: boolean) {
    if (stale === this.#stale || this.#down) return;
    this.#stale = stale;
    this.#name();
  }

  /** The streams of this connection. Created with the first stream, because most sessions have none. */
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

  /** The reason for the end of the connection; undefined while the connection lasts. */
  get ended(): string | undefined {
    return this.#link.ended;
  }

  /** True when the server answers pings. */
  get pings(): boolean {
    return this.connection.pings;
  }

  /**
   * Sends a ping. `onPong` is called when the answer comes, and `onNone` when no answer has come after the
   * timeout.
   */
  ping(timeoutMs: number, onNone: () => void): void {
    clearTimeout(this.#pongTimer);
    this.#pongTimer = setTimeout(onNone, timeoutMs);
    this.#link.send({ type: 'ping' });
  }

  /** Returns the progress of the data connection in bytes. The query needs system calls. */
  path(): SessionPath | undefined {
    const { context, target } = this.connection;
    return context.native.sessionPath(target.session);
  }

  /** Number of calls and streams of the application in flight. */
  get load(): number {
    return this.session.inFlight - this.ownCalls;
  }

  get busy(): boolean {
    return this.load > 0;
  }

  get unserved(): boolean {
    return this.session.unserved;
  }

  /** True when the connection takes no more calls. */
  get draining(): boolean {
    return this.#draining;
  }

  /** Takes no more calls, and closes the connection after the last call. */
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

  /** Closes the connection when the last call of either direction has ended. */
  #closeDrained(): void {
    if (this.#draining && !this.busy && this.#serving === undefined) this.close('drained');
  }

  /** Sets the object that serves calls on the connection. */
  serve(serving: ConnectionServing): void {
    this.#serving = serving;
  }

  /** Removes `serving`, unless another object serves the connection now. */
  serveNoMore(serving: ConnectionServing): void {
    if (this.#serving !== serving) return;
    this.#serving = undefined;
    this.#closeDrained();
  }

  /** Sends a frame of the second session, or of remote memory. */
  send(frame: Frame): void {
    this.#link.send(frame);
  }

  /**
   * Handles a goaway. The second goaway only says that the server accepts no more calls. Each call that the
   * server has not accepted then fails on its own, with an error that says that it did not run.
   */
  #leave(): void {
    if (this.#draining) return;
    // The server itself ends its calls to this side.
    this.#drain();
    const { calls, inFlight } = this.session;
    if (inFlight > 0 && this.connection.answersGoaway) this.#link.send({ type: 'leaving', calls });
  }

  onCallDone(): void {
    if (this.#waiting.size !== 0) this.#queue.pumpAfter(this.connection.context);
    this.#closeDrained();
  }

  onStreamAnswer(status: number, at: number): void {
    this.session.tally.count(status, at);
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

  /** Runs when the connection ends, whether the link or the session notices it first. */
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
    this.#link.close(reason, byeOfSession('client', reason));
    releaseContext(this.connection.context);
    this.#owner.onDown(this);
  }

  onConsecutiveErrors(): void {
    this.#owner.onConsecutiveErrors(this);
  }

  onSilence(): void {
    this.#owner.onSilence(this);
  }

  onRejected(): void {
    // The server has already announced the end.
    this.drain();
  }

  #onFrame(frame: Frame): void {
    if (frame.type === 'goaway') {
      this.#leave();
    } else if (frame.type === 'pong') {
      clearTimeout(this.#pongTimer);
      this.#owner.onPong(this);
    } else if (frame.type === 'serving' || frame.type === 'served' || frame.type === 'unserve') {
      // The frame has crossed the end of the second session and is dropped.
      this.#serving?.onFrame(frame);
    } else if (frame.type === 'memoryAccepted' || frame.type === 'memoryEnd') {
      // Without an owner, the frame has arrived after the end of the queue pair and is dropped.
      this.memory?.onFrame(frame);
    } else if (frame.type === 'bye') {
      // A peer that sent `bye` no longer reads.
      this.#said = frame.reason;
      this.#link.close(frame.reason);
    } else {
      // The server has read neither this side's `ready` nor an earlier request.
      if (frame.type === 'refusal') this.session.unserved = true;
      this.#said = ending(frame);
      this.close(ending(frame));
    }
  }
}
