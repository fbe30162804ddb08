/**
 * Sessions of a context that are connecting, or have connected and have no owner yet: who waits for that, and
 * how it has ended. On the context's JS thread.
 */

interface Waiting {
  readonly settle: (why: string) => void;
  /** It has gone down already, for this reason. */
  down?: string;
}

export class UnownedSessions {
  readonly #sessions = new Map<number, Waiting>();

  get size(): number {
    return this.#sessions.size;
  }

  /**
   * Resolves with '' when the session is connected, or with why it will not be. It stays here until `take`.
   */
  connected(session: number): Promise<string> {
    return new Promise((settle) => this.#sessions.set(session, { settle }));
  }

  /**
   * Calls `listener` when the session is connected, if it ever is. Of one that has an owner: it does not
   * stay.
   */
  onceUp(session: number, listener: () => void): void {
    const settle = (why: string): void => {
      this.#sessions.delete(session);
      if (why === '') listener();
    };
    this.#sessions.set(session, { settle });
  }

  up(session: number): void {
    this.#sessions.get(session)?.settle('');
  }

  down(session: number, reason: string): void {
    const waiting = this.#sessions.get(session);
    if (waiting === undefined) return;
    waiting.down = reason;
    waiting.settle(reason);
  }

  /** It has an owner, or will never have one. Returns why it has gone down by then. */
  take(session: number): string | undefined {
    const waiting = this.#sessions.get(session);
    this.#sessions.delete(session);
    return waiting?.down;
  }
}
