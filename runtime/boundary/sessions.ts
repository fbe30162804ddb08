/**
 * The sessions of one context: creates them, connects them over the fabric, and finds them by number for the
 * dispatch of events. A FabricContext owns this object and uses it on its JS thread.
 */
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import { fabrics } from '../fabrics.ts';
import { sessionIndexMask } from '../limits.ts';
import type { NativeContext, NativeOptions, SessionOptions } from '../native/native.ts';
import type { Outgoing } from './outgoing/outgoing.ts';
import type { Target } from './outgoing/submission.ts';
import { UnownedSessions } from './unowned-sessions.ts';

/**
 * A client or server session. `at` is the index at which the event's words start. The methods must not throw.
 */
export interface SessionOwner {
  readonly target: Target;
  onRequest(at: number): void;
  onSettled(at: number): void;
  onFailed(at: number): void;
  onCancelled(at: number): void;
  onPartWaits(at: number): void;
  onReleased(at: number): void;
  /**
   * Runs when the session takes no more calls. Sets `target.gone` before it notifies listeners, because a
   * listener may begin a call at once, and no event would end that call. The first component that notices the
   * end calls this function; a second call does nothing.
   */
  lost(): void;
  /**
   * Runs at the last event of the session, after `lost()`. From now on the session's number may be reused.
   */
  onDown(reason: string): void;
}

/** The address of the server, as this host reaches it. */
export type Through = { readonly host: string; readonly port: number } | { readonly path: string };

const addressText = (address: Uint8Array): string => Buffer.from(address).toString('latin1');

export class Sessions {
  /** Number of sessions with an owner. */
  size = 0;

  readonly #fabric: NativeOptions['fabric'];
  readonly #native: NativeContext;
  readonly #outgoing: Pick<Outgoing, 'flush'>;
  /** Owners, indexed by the low bits of their session numbers. These bits are unique among live sessions. */
  readonly #owners: (SessionOwner | undefined)[] = [];
  readonly #unowned = new UnownedSessions();
  /** The addresses of clients' sessions that are not connected yet, as texts. */
  readonly #dialling = new Map<number, string>();
  /**
   * Sessions of servers whose client is in the same context, on a fabric that copies the client's messages to
   * the arena.
   */
  readonly #loops = new Set<number>();

  constructor(fabric: NativeOptions['fabric'], native: NativeContext, outgoing: Pick<Outgoing, 'flush'>) {
    this.#fabric = fabric;
    this.#native = native;
    this.#outgoing = outgoing;
  }

  /** Number of sessions without an owner, for tests. */
  get unowned(): number {
    return this.#unowned.size;
  }

  /**
   * Throws an RpcError that names the exceeded limit. The session's events go to the owner that `attach`
   * sets.
   */
  create(options: SessionOptions): number {
    try {
      return this.#native.createSession(options);
    } catch (cause) {
      throw RpcError.from(cause, Status.RESOURCE_EXHAUSTED);
    }
  }

  /**
   * True when both ends of a session share this arena. A message in flight then occupies the arena twice, as
   * the sender's copy and as the receiver's.
   */
  get loops(): boolean {
    return this.#loops.size !== 0;
  }

  /** Returns the address of a client's session, for its server. */
  addressOf(session: number): Uint8Array {
    const address = this.#native.sessionAddress(session);
    if (this.#native.capabilities.copiesLate) this.#dialling.set(session, addressText(address));
    return address;
  }

  /**
   * Connects a server's session to the client with the address `peerAddress`. Returns '' on success, or the
   * reason why they cannot be connected.
   */
  accept(session: number, peerAddress: Uint8Array, words?: Uint8Array): string {
    const why = this.#native.connectSession(session, peerAddress, undefined, undefined, words);
    if (why === '' && this.#dialling.size !== 0) {
      const text = addressText(peerAddress);
      for (const each of this.#dialling.values()) if (each === text) this.#loops.add(session);
    }
    return why;
  }

  /**
   * Begins to connect a session of the side that has opened the connection. Returns '', or the reason why the
   * session cannot be connected. `through` is the address to dial, for fabrics that dial by themselves.
   * `words` are the identifying words in the form that native code takes.
   */
  dial(session: number, peerAddress: Uint8Array, through?: Through, words?: Uint8Array): string {
    this.#dialling.delete(session);
    const to = fabrics[this.#fabric].dials === 'nothing' ? undefined : through;
    const [host, port] = to === undefined ? [] : 'path' in to ? [to.path] : [to.host, to.port];
    return this.#native.connectSession(session, peerAddress, host, port, words);
  }

  /**
   * Does the same as `dial`, and resolves to '' when the session's queue pair is connected to the queue pair
   * of the peer, or to the reason why it cannot be connected. The fabric limits the time for this.
   */
  connect(session: number, peerAddress: Uint8Array, through?: Through, words?: Uint8Array): Promise<string> {
    const why = this.dial(session, peerAddress, through, words);
    return why === '' ? this.connected(session) : Promise.resolve(why);
  }

  /**
   * Resolves to '' when a session without an owner is connected, or to the reason why it will not be
   * connected.
   */
  connected(session: number): Promise<string> {
    return this.#unowned.connected(session);
  }

  /**
   * Calls `listener` when the queue pair of a session that has an owner is connected. It is not called if the
   * queue pair is never connected.
   */
  onceUp(session: number, listener: () => void): void {
    this.#unowned.onceUp(session, listener);
  }

  attach(owner: SessionOwner): void {
    const { session } = owner.target;
    this.#owners[session & sessionIndexMask] = owner;
    ++this.size;
    const lost = this.#unowned.take(session);
    if (lost !== undefined) setImmediate(() => this.down(session, lost));
  }

  /** Ends a session that will get no owner. */
  discard(session: number, reason: string): void {
    this.#dialling.delete(session);
    this.#loops.delete(session);
    this.#unowned.take(session);
    this.#native.closeSession(session, reason);
  }

  /** Returns whether the session has an owner and is not down. */
  has(session: number): boolean {
    return this.ownerOf(session) !== undefined;
  }

  /**
   * Returns the owner, or undefined when the session has none, or when its number belongs to another session
   * by now.
   */
  ownerOf(session: number): SessionOwner | undefined {
    const owner = this.#owners[session & sessionIndexMask];
    return owner !== undefined && owner.target.session === session ? owner : undefined;
  }

  /**
   * Ends a session. First the staged submissions are flushed, so that native code knows every call. Then the
   * session's calls fail, and `onDown` follows.
   */
  close(session: number, reason: string): void {
    this.#outgoing.flush();
    this.#native.closeSession(session, reason);
  }

  /** Handles the event that the queue pair of a session is connected. */
  up(session: number): void {
    this.#unowned.up(session);
  }

  /** Handles the event that the session has ended. */
  down(session: number, reason: string): void {
    this.#loops.delete(session);
    this.#unowned.down(session, reason);
    const owner = this.ownerOf(session);
    if (owner === undefined) return;
    this.#owners[session & sessionIndexMask] = undefined;
    --this.size;
    owner.lost();
    owner.onDown(reason);
  }
}
