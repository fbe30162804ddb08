/**
 * A connection of a channel on which this side serves calls of the server. It manages the second session,
 * from the `serve` frame to the end of the session, and the ServerSession that uses it. The ReverseServer of
 * the channel creates this object on its JS thread.
 *
 * | state   | event                       | reaction                                              |
 * |---------|-----------------------------|-------------------------------------------------------|
 * | asked   | serving                     | connects the queue pair → dialled                     |
 * | dialled | served                      | notifies the owner → up                               |
 * | any     | unserve, end, session down  | aborts handlers, gives the owner the reason → over    |
 */
import { releaseContext } from '../boundary/contexts.ts';
import type { ClientLink, ConnectionServing } from '../client/connections/client-link.ts';
import { controlText, type Served, type Serving as ServingFrame, type Unserve } from '../control/frames.ts';
import type { SecondHalf } from '../control/handshake/second-session.ts';
import { discardSession } from '../control/handshake/session-setup.ts';
import { levelNumber, levelOf } from '../control/security-level.ts';
import { RpcError } from '../core/errors/rpc-error.ts';
import { errorCode, Status } from '../core/errors/status.ts';
import { textOf } from '../core/foreign.ts';
import type { HandlerTable } from '../server/handlers.ts';
import type { Load } from '../server/load.ts';
import { ServerSession, type ServerSessionListener } from '../server/server-session.ts';
import { ServerStreams } from '../server/stream/server-streams.ts';

export interface ServingOwner {
  readonly handlers: HandlerTable;
  readonly load: Load;
  onHandlerError(error: unknown, method: string): void;
  /** Runs when the server can make calls. */
  onServed(): void;
  /**
   * Runs when all resources are released. `isFinal` is true when the server will never make calls to this
   * client.
   */
  onOver(serving: Serving, error: RpcError, isFinal: boolean): void;
}

/** Status codes with which a server refuses when another attempt would fail, too. */
const final: readonly number[] = [Status.UNIMPLEMENTED, Status.PERMISSION_DENIED];

export class Serving implements ConnectionServing, ServerSessionListener {
  readonly link: ClientLink;
  readonly #owner: ServingOwner;
  readonly #half: SecondHalf;
  /** The session. It is undefined until the server has answered. */
  #session: ServerSession | undefined;
  /** The reason of the end, when the reason is known before the session is down. */
  #why: RpcError | undefined;
  #isOver = false;
  #onOver: (() => void) | undefined;

  /** Sends the `serve` frame. Throws when this side cannot have another session. */
  constructor(link: ClientLink, half: SecondHalf, owner: ServingOwner) {
    this.link = link;
    this.#half = half;
    this.#owner = owner;
    link.serve(this);
    link.send({ type: 'serve', ...half.offer() });
  }

  onFrame(frame: ServingFrame | Served | Unserve): void {
    // The frame belongs to an earlier session, which ended while the frame was on its way.
    if (frame.number !== this.#half.number) return;
    if (frame.type === 'serving') this.#dial(frame);
    else if (frame.type === 'served') {
      if (this.#session !== undefined && this.#why === undefined) this.#owner.onServed();
    } else this.#end(new RpcError(errorCode(frame.code ?? Status.UNAVAILABLE), frame.reason));
  }

  drain(reason: string): void {
    this.link.send({ type: 'unserve', number: this.#half.number, reason });
  }

  end(reason: string): void {
    this.#end(new RpcError(Status.UNAVAILABLE, reason));
  }

  /** Ends the second session now. Resolves when all resources are released. */
  close(reason: string): Promise<void> {
    if (this.#isOver) return Promise.resolve();
    this.link.send({ type: 'unserve', number: this.#half.number, reason, now: true });
    return new Promise((resolve) => {
      this.#onOver = resolve;
      this.#end(new RpcError(Status.CANCELLED, reason));
    });
  }

  onHandlerError(error: unknown, method: string): void {
    this.#owner.onHandlerError(error, method);
  }

  onSessionDown(_: ServerSession, reason: string): void {
    if (this.#why === undefined)
      this.link.send({ type: 'unserve', number: this.#half.number, reason, now: true });
    releaseContext(this.#half.prepared.context);
    this.#over(this.#why ?? new RpcError(Status.UNAVAILABLE, reason));
  }

  /** Connects the session. The ServerSession is attached first, because requests may arrive at once. */
  #dial(frame: ServingFrame): void {
    if (this.#session !== undefined || this.#why !== undefined) return;
    const { context, target, streamsMax, protection } = this.#half.prepared;
    const { server } = this.link.connection;
    const session = new ServerSession(
      context,
      target,
      { peer: server, account: undefined },
      this.#owner.handlers,
      this.#owner.load,
      this,
    );
    session.leasesEnd = true;
    if (streamsMax > 0) session.makeParts = () => new ServerStreams(session.shared, streamsMax);
    this.#session = session;
    context.native.nameSession(
      target.session,
      String(server),
      levelNumber(levelOf(server.security, protection)),
    );
    try {
      const why = this.#half.dial(frame);
      if (why !== '') context.sessions.close(target.session, why);
    } catch (error) {
      // The queue pair does not belong to the server of the handshake, so the connection ends.
      this.link.close(controlText(textOf(error)));
    }
  }

  #end(why: RpcError): void {
    if (this.#why !== undefined) return;
    this.#why = why;
    const { prepared } = this.#half;
    const { context, target } = prepared;
    if (this.#session !== undefined) context.sessions.close(target.session, why.rawMessage);
    else {
      discardSession(prepared, why.rawMessage);
      this.#over(why);
    }
  }

  #over(why: RpcError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onOver?.();
    this.#owner.onOver(this, why, final.includes(why.code));
    // This call must be last, because the connection may have waited for the end of the second session.
    this.link.serveNoMore(this);
  }
}
