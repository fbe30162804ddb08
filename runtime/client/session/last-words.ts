/**
 * Why a session has ended: by what this side has seen of it, and by what the server says on the control
 * connection. The server's word is the reason where it has ended the session itself, but its queue pair is
 * often heard first, which only says that it is over. So what the end of a session means for its calls waits
 * for the control connection to end, too, which is a matter of milliseconds. Not where this side has ended
 * the session. Owned by a client session, on its JS thread.
 */

import { warnOfFault } from '../../core/warnings.ts';
import type { NativeContext } from '../../native/native.ts';
import type { ClientSessionListener } from './session-listeners.ts';

export class LastWords {
  /** What this side has seen. */
  own: string | undefined;
  #said: string | undefined;
  /** Undefined until somebody has asked. */
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
   * Calls `then` when the server has said why, in order. Returns false when that is known already; nothing
   * has happened then. `begin`: this is an end, and the first begins to wait.
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

  /** As FabricContext does with events: a fault of this library in one of them is no other call's. */
  #run(then: () => void): void {
    try {
      then();
    } catch (error) {
      warnOfFault(error);
    }
  }
}
