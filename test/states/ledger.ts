/**
 * Implements the oracle. The oracle records the history of every call, on both sides, and the rules that must
 * hold after everything that may be done to the call.
 */
import { RpcError, Status } from 'rdma-rpc';

/**
 * The action of the test on a call while the call was in progress. With `busy loss`, further calls begin
 * around each event of the batch that ends the session.
 */
export type Misfortune = 'none' | 'cancel' | 'deadline' | 'loss' | 'busy loss' | 'drain' | 'deaf drain';

/**
 * Kinds with one request. Calls of these kinds are repeated automatically when no handler has seen them. The
 * first requests of a stream of requests have been used up.
 */
export const singles: readonly string[] = ['unary', 'one-way', 'server stream'];

export interface Entry {
  readonly id: number;
  readonly what: string;
  misfortune: Misfortune;
  /** Number of times that the call's handler began. */
  began: number;
  /** True when the reader of the call's stream left before the end. */
  left: boolean;
  /** Number of times that the caller was notified of an end. */
  ends: number;
  error: RpcError | undefined;
}

const allowed: Readonly<Record<Misfortune, readonly number[]>> = {
  none: [],
  cancel: [Status.CANCELLED],
  deadline: [Status.DEADLINE_EXCEEDED],
  loss: [Status.UNAVAILABLE],
  'busy loss': [Status.UNAVAILABLE],
  drain: [],
  'deaf drain': [],
};

export class Ledger {
  readonly entries: Entry[] = [];
  readonly faults: string[] = [];
  /** Number of generators and handlers of streams that have begun and have not ended. */
  inside = 0;

  add(what: string): Entry {
    const entry: Entry = {
      id: this.entries.length + 1,
      what,
      misfortune: 'none',
      began: 0,
      left: false,
      ends: 0,
      error: undefined,
    };
    this.entries.push(entry);
    return entry;
  }

  /**
   * Returns the entry of a message that arrived. Returns undefined, and records a fault, when no side sent
   * it.
   */
  find(id: number): Entry | undefined {
    const entry = this.entries[id - 1];
    if (entry === undefined) this.fault(`a message of call ${id}, which nobody made`);
    return entry;
  }

  fault(text: string): void {
    this.faults.push(text);
  }

  end(entry: Entry, error?: unknown): void {
    ++entry.ends;
    if (error === undefined) return;
    entry.error = RpcError.from(error);
    if (!(error instanceof RpcError)) this.fault(`call ${entry.id} failed with ${String(error)}`);
  }

  get open(): number {
    return this.entries.filter(({ ends }) => ends === 0).length;
  }

  /** Returns every rule that was broken. */
  verdict(): string[] {
    const deaf = this.entries.some(({ misfortune }) => misfortune === 'deaf drain');
    const lost = this.entries.some(({ misfortune }) => misfortune.endsWith('loss'));
    if (this.inside !== 0) this.fault(`${this.inside} generators have not come to their end`);
    for (const { id, what, misfortune, began, left, ends, error } of this.entries) {
      const call = `call ${id} (${what}, ${misfortune})`;
      if (ends !== 1) this.fault(`${call} ended ${ends} times`);
      if (began > 1) this.fault(`${call} ran ${began} times`);
      if (error === undefined && began !== 1 && !left) this.fault(`${call} is OK and ran ${began} times`);
      if (error?.processed === 'no' && began !== 0)
        this.fault(`${call} says processed: no, but ran (${error?.message})`);
      const codes = lost ? [...allowed[misfortune], Status.UNAVAILABLE] : allowed[misfortune];
      // A call that is cancelled need not be repeated on another connection.
      const once = misfortune === 'cancel' || !singles.includes(what);
      if (deaf && once && error?.code === Status.UNAVAILABLE && error.processed === 'no') continue;
      if (error !== undefined && !codes.includes(error.code)) this.fault(`${call} failed: ${error.message}`);
    }
    return this.faults;
  }
}
