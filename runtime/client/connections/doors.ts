/**
 * The doors of a server are several addresses by which the same server is reached, such as a unix path on its
 * node, an address in the RDMA network, and an address for tcp. An attempt to connect tries them in order.
 * Policies, subsets, ejection and metrics treat the server as one address. The connections of a channel own
 * this object and use it on their JS thread.
 */
import { clockMs } from '../../clock.ts';
import type { Connection } from '../../control/handshake/client-handshake.ts';
import type { LocalSide } from '../../control/handshake/session-setup.ts';
import { pushback } from '../../core/errors/pushback.ts';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import type { Open, ReadyConnection } from './endpoint.ts';
import type { Server } from './servers.ts';

export class Doors {
  readonly #openOf: (address: string) => Open;
  readonly #timeoutMs: number;
  /** The doors of servers that have several, in the order in which they are tried. */
  #doors = new Map<string, readonly string[]>();
  readonly #used = new WeakMap<Connection, string>();

  /** `openOf` connects to one address. `timeoutMs` is the time limit of a whole attempt. */
  constructor(openOf: (address: string) => Open, timeoutMs: number) {
    this.#openOf = openOf;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Takes the doors of a new list. Changed doors are used from the next attempt on; open connections stay.
   */
  update(servers: readonly Server[]): void {
    this.#doors = new Map();
    for (const { address, doors = [] } of servers) {
      const all = doors.includes(address) ? doors : [...doors, address];
      if (all.length > 1) this.#doors.set(address, all);
    }
  }

  /** Returns the door of a connection, or undefined when its server has only one address. */
  of(connection: Connection): string | undefined {
    return this.#used.get(connection);
  }

  /** Connects to the server by the first of its doors that can be reached. */
  open(address: string): Open {
    return (side, signal) => {
      const doors = this.#doors.get(address);
      return doors === undefined
        ? this.#openOf(address)({ ...side, attemptMs: this.#timeoutMs }, signal)
        : this.#first(address, doors, side, signal);
    };
  }

  async #first(
    address: string,
    doors: readonly string[],
    side: LocalSide,
    signal: AbortSignal,
  ): Promise<ReadyConnection> {
    const endMs = clockMs() + this.#timeoutMs;
    const failed: string[] = [];
    let last: RpcError | undefined;
    for (const [i, door] of doors.entries()) {
      const left = doors.length - i;
      // When one door drops all packets, time must remain for the other doors.
      const attemptMs = Math.max(1, Math.ceil((endMs - clockMs()) / left));
      try {
        const open = this.#openOf(door);
        const own = { ...side, attemptMs };
        const found = await (left === 1 ? open(own, signal) : this.#within(open, own, signal, attemptMs));
        this.#used.set(found.connection, door);
        if (failed.length > 0)
          side.log(() => `${address}: connected by ${door}; without ${failed.join('; ')}`, false);
        return found;
      } catch (cause) {
        signal.throwIfAborted();
        last = RpcError.from(cause, Status.UNAVAILABLE);
        // An overloaded server is the same behind every door.
        if (typeof pushback(last) === 'number') throw last;
        failed.push(`${door}: ${last.rawMessage}`);
      }
    }
    const { code, trailer } = last!;
    const text = `none of its ${doors.length} addresses can be reached: ${failed.join('; ')}`;
    throw new RpcError(code, text, { processed: 'no', cause: last, trailer });
  }

  async #within(open: Open, side: LocalSide, signal: AbortSignal, limitMs: number): Promise<ReadyConnection> {
    const late = new AbortController();
    const text = `no answer within ${limitMs} ms, which is its part of connectTimeoutMs`;
    const timer = setTimeout(() => late.abort(new Error(text)), limitMs);
    try {
      return await open(side, AbortSignal.any([signal, late.signal]));
    } finally {
      clearTimeout(timer);
    }
  }
}
