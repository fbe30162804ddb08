/**
 * The sessions of a context that are connecting, or are connected but have no owner yet. It records who waits
 * for each connection, and how the session has ended. It is used on the context's JS thread.
 */

interface Waiting {
  readonly settle: (why: string) => void;
  /** The reason why the session has already ended. */
  down?: string;
}

export class UnownedSessions {
  readonly #sessions = new Map<number, Waiting>();

  get size(): number {
    return this.#sessions.size;
  }

  /**
   * Resolves to '' when the session is connected, or to the reason why it will not be connected. The session
   * stays here until `take`.
   */
  connected(session: number): Promise<string> {
    return new Promise((settle) => this.#sessions.set(session, { settle }));
  }

  /**
   * Calls `listener` when the session is connected. It is not called if the session is never connected. The
   * session has an owner, so it is not kept in this table.
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

  /**
   * Removes a session that has got an owner, or that will never get one. Returns the reason why the session
   * has already ended, or undefined if it has not.
   */
  take(session: number): string | undefined {
    const waiting = this.#sessions.get(session);
    this.#sessions.delete(session);
    return waiting?.down;
  }
}
