/**
 * A connection of a server whose client may serve calls. It manages the second session, from the client's
 * `serve` frame to the end of the session, and the Peer that uses it. RpcPeers creates it when the client
 * first offers to serve, on the server's JS thread.
 *
 * | state      | event                       | reaction                                                 |
 * |------------|-----------------------------|----------------------------------------------------------|
 * | idle       | serve                       | asks `authorize` whether the client may serve → asking   |
 * | asking     | the client may serve        | sends `serving` → connecting                             |
 * | asking     | the client may not serve    | sends `unserve` → idle                                   |
 * | connecting | the session is connected    | creates the peer, sends `served` → open                  |
 * | open       | unserve, drain              | waits for the last answer, sends `unserve` → ending      |
 * | open       | unserve now, lost, end      | fails the calls, sends `unserve` → ending                |
 * | ending     | the session is released     | → idle                                                   |
 * | ending     | serve                       | handles the frame when idle                              |
 */
import { controlText, type Serve, type Unserve } from '../control/frames.ts';
import type { SecondHalf } from '../control/handshake/second-session.ts';
import { discardSession } from '../control/handshake/session-setup.ts';
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status, type StatusCode } from '../core/errors/status.ts';
import { textOf } from '../core/foreign.ts';
import type { ConnectionCalls, ServerConnection } from '../server/server-connection.ts';
import { RpcPeer } from './peer.ts';

export interface CallingOwner {
  /** Throws, or rejects its promise, when the client of this connection may not serve. */
  authorize(connection: ServerConnection): Promise<void> | undefined;
  onPeer(connection: ServerConnection, peer: RpcPeer): void;
  onGone(connection: ServerConnection, peer: RpcPeer): void;
}

type State = 'idle' | 'asking' | 'connecting' | 'open' | 'ending';

export class Calling implements ConnectionCalls {
  readonly #connection: ServerConnection;
  readonly #owner: CallingOwner;
  #state: State = 'idle';
  /** Number in the current or last serve frame. */
  #number = -1;
  /** A serve frame that has arrived before the earlier session has ended. */
  #next: Serve | undefined;
  #half: SecondHalf | undefined;
  #peer: RpcPeer | undefined;
  /** The reason why no further session will be accepted, or undefined. */
  #over: string | undefined;

  constructor(connection: ServerConnection, owner: CallingOwner) {
    this.#connection = connection;
    this.#owner = owner;
  }

  get open(): boolean {
    return this.#state !== 'idle';
  }

  onFrame(frame: Serve | Unserve): void {
    if (frame.type === 'serve') this.#serve(frame);
    else if (frame.number === this.#next?.number) this.#next = undefined;
    else if (frame.number === this.#number) this.#unserve(frame);
  }

  drain(reason: string): void {
    this.#over ??= reason;
    if (this.#state === 'open') this.#peer?.drain(reason);
    else this.#giveUp(Status.UNAVAILABLE, reason);
  }

  end(reason: string): void {
    this.#over ??= reason;
    if (this.#state === 'open') this.#end(reason);
    else this.#giveUp(Status.UNAVAILABLE, reason);
  }

  #serve(frame: Serve): void {
    const isNext = frame.number === this.#number + 1 && this.#next === undefined;
    if (!isNext || (this.#state !== 'idle' && this.#state !== 'ending')) {
      this.#connection.close('the client sent serve out of order');
    } else if (this.#state === 'ending') this.#next = frame;
    else this.#ask(frame);
  }

  #ask(frame: Serve): void {
    const { number } = frame;
    this.#number = number;
    this.#state = 'asking';
    if (this.#over !== undefined) {
      this.#giveUp(Status.UNAVAILABLE, this.#over);
      return;
    }
    const refused = (error: unknown): void => {
      if (!this.#is('asking', number)) return;
      const { code, rawMessage } = RpcError.from(error, Status.UNAVAILABLE);
      this.#giveUp(code, rawMessage);
    };
    try {
      const later = this.#owner.authorize(this.#connection);
      if (later === undefined) this.#connect(frame);
      else {
        const allowed = (): void => {
          if (this.#is('asking', number)) this.#connect(frame);
        };
        later.then(allowed).catch(refused);
      }
    } catch (error) {
      refused(error);
    }
  }

  #connect(frame: Serve): void {
    const { second, link } = this.#connection;
    if (second === undefined) throw new RpcError(Status.UNIMPLEMENTED, 'the client has not offered to serve');
    const half = second.open(frame.number);
    this.#half = half;
    this.#state = 'connecting';
    let answer: ReturnType<SecondHalf['accept']>;
    try {
      answer = half.accept(frame);
    } catch (error) {
      // The queue pair does not belong to the client of the handshake, so the connection ends.
      this.#connection.close(controlText(textOf(error)));
      return;
    }
    if (typeof answer === 'string') {
      this.#giveUp(Status.UNAVAILABLE, answer);
      return;
    }
    link.send({ type: 'serving', ...answer });
    const { context, target } = half.prepared;
    void context.sessions.connected(target.session).then((why) => {
      if (!this.#is('connecting', half.number)) return;
      if (why === '') void this.#opened(half);
      else this.#giveUp(Status.UNAVAILABLE, why);
    });
  }

  async #opened({ prepared, number }: SecondHalf): Promise<void> {
    this.#half = undefined;
    this.#state = 'open';
    const peer = new RpcPeer(prepared, this.#connection.session.peer, (reason) =>
      this.#onClosed(peer, reason),
    );
    this.#peer = peer;
    await peer.channel.ready().catch(() => undefined);
    if (this.#peer !== peer) return;
    if (peer.channel.state !== 'ready') {
      // The session ended before the channel got it.
      this.#end(this.#over ?? 'the client serves no more');
      return;
    }
    this.#owner.onPeer(this.#connection, peer);
    this.#connection.link.send({ type: 'served', number });
  }

  #unserve({ now, reason }: Unserve): void {
    if (this.#state === 'open') {
      if (now === true) this.#end(reason);
      else this.#peer?.drain(reason);
    } else this.#giveUp(Status.CANCELLED, reason);
  }

  #end(reason: string): void {
    void this.#peer?.end(reason);
  }

  /** Runs when the peer makes no more calls and none is in flight. */
  #onClosed(peer: RpcPeer, reason: string): void {
    if (this.#peer !== peer) return;
    this.#peer = undefined;
    this.#state = 'ending';
    this.#say(Status.UNAVAILABLE, reason);
    this.#owner.onGone(this.#connection, peer);
    void peer.end(reason).then(() => this.#idle());
  }

  /** Ends an attempt that has failed. */
  #giveUp(code: StatusCode, reason: string): void {
    if (this.#state !== 'asking' && this.#state !== 'connecting') return;
    const half = this.#half;
    this.#half = undefined;
    if (half !== undefined) discardSession(half.prepared, reason);
    this.#say(code, reason);
    this.#idle();
  }

  #idle(): void {
    this.#state = 'idle';
    const next = this.#next;
    this.#next = undefined;
    if (next !== undefined) this.#ask(next);
  }

  #say(code: StatusCode, reason: string): void {
    this.#connection.link.send({ type: 'unserve', number: this.#number, reason: controlText(reason), code });
  }

  #is(state: State, number: number): boolean {
    return this.#state === state && this.#number === number;
  }
}
