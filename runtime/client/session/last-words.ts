/**
 * Determines why a session has ended, from the observations of this side and from the server's messages on
 * the sideband connection. When the server has ended the session, the reason is in its message. However, this
 * side often notices first that the queue pair has ended, and the queue pair gives no reason. Therefore the
 * calls do not fail before the sideband connection has ended, too, which takes milliseconds. When this side
 * has ended the session, the calls fail at once. A client session owns this object and uses it on its JS
 * thread.
 */

import { warnOfFault } from '../../core/warnings.ts';
import type { NativeContext } from '../../native/native.ts';
import type { ClientSessionListener } from './session-listeners.ts';

export class LastWords {
  /** The reason that this side has observed. */
  own: string | undefined;
  #said: string | undefined;
  /**
   * True while the server's reason is awaited, and false when it is known or cannot come. It is undefined
   * before the end of the session.
   */
  #waiting: boolean | undefined;
  readonly #native: Pick<NativeContext, 'sessionInfo' | 'sessionError'>;
  readonly #session: number;
  readonly #listener: Pick<ClientSessionListener, 'lastWords'>;
  readonly #peer: 'client' | 'server';
  readonly #deferred: (() => void)[] = [];

  constructor(
    native: Pick<NativeContext, 'sessionInfo' | 'sessionError'>,
    session: number,
    listener: Pick<ClientSessionListener, 'lastWords'>,
    peer: 'client' | 'server' = 'server',
  ) {
    this.#native = native;
    this.#session = session;
    this.#listener = listener;
    this.#peer = peer;
  }

  get why(): string {
    const own = this.own ?? '';
    return this.#said === undefined ? own : `${own}; the ${this.#peer} says: ${this.#said}`;
  }

  /**
   * Calls `then` when the server's reason is known. Deferred functions are called in order. Returns false and
   * does not call `then` when this side does not wait for a reason. `begin` says that this is the end of the
   * session, so that waiting begins.
   */
  defer(then: () => void, begin = true): boolean {
    if (this.#waiting === undefined && begin) this.#begin();
    if (begin) this.own ??= this.#native.sessionError(this.#session);
    if (this.#waiting !== true) return false;
    this.#deferred.push(then);
    return true;
  }

  #begin(): void {
    const words = this.#native.sessionInfo(this.#session).endedThere ? this.#listener.lastWords() : undefined;
    this.#waiting = words !== undefined;
    words?.then((said) => {
      this.#said = said;
      this.#waiting = false;
      for (const then of this.#deferred.splice(0)) this.#run(then);
    });
  }

  /**
   * Calls a function and reports its error, as FabricContext does with events. An error of this library in
   * one function must not affect the other functions.
   */
  #run(then: () => void): void {
    try {
      then();
    } catch (error) {
      warnOfFault(error);
    }
  }
}
