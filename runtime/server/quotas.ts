/**
 * Option `quotas`: limits how much of a server each identity may use. All sessions of an identity share one
 * account, so that an identity that uses too much harms only itself. A server owns this object and uses it on
 * its JS thread.
 */

import type { Duplex } from 'node:stream';
import { clockMs } from '../clock.ts';
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status } from '../core/errors/status.ts';
import { promiseOf, textOf } from '../core/foreign.ts';
import { checkedOptions, type OptionRules } from '../core/options.ts';
import type { PeerInfo } from '../core/peer.ts';
import { inRoot } from '../core/scopes.ts';
import * as limits from '../limits.ts';
import { NotAdmitted } from './allowed.ts';
import { exhausted, type Refusal } from './call-faults.ts';
import { TokenBucket } from './token-bucket.ts';

/**
 * The limits of one identity. A missing number means no limit. All peers without a known identity share one
 * account.
 */
export interface Quotas {
  /** Concurrent connections, including connections in their handshake. */
  sessionsMax?: number;
  /** Calls that are started per second, including streams. All calls of one second may be made at once. */
  callsPerSecondMax?: number;
  /**
   * Bytes per second of requests (including refused requests), responses and parts of streams. A larger
   * message is accepted, but later calls are refused until its bytes are paid off.
   */
  bytesPerSecondMax?: number;
  /**
   * Arena memory in bytes that the large requests of one session may hold. A request holds its memory until
   * its handler has finished and has released the memory that it kept. Large responses may hold the same
   * amount again, until the client has received them. A response that is larger than this amount is sent
   * alone.
   */
  arenaBytesMax?: number;
  /**
   * Bytes that the server may expose to the identity at the same time, over all its sessions
   * (`rdma-rpc/memory`).
   */
  exposedBytesMax?: number;
}

/**
 * Runs for each connection when the identity of its peer is known. Returns the limits, or undefined for no
 * limits.
 */
export type QuotasOf = (peer: PeerInfo) => Quotas | undefined;

const quotaRules: OptionRules = {
  sessionsMax: { kind: 'integer', range: limits.quotaSessions },
  callsPerSecondMax: { kind: 'integer', range: limits.quotaCallsPerSecond },
  bytesPerSecondMax: { kind: 'integer', range: limits.quotaBytesPerSecond },
  arenaBytesMax: { kind: 'integer', range: limits.quotaArenaBytes },
  exposedBytesMax: { kind: 'integer', range: limits.quotaExposedBytes },
};

const named = (option: keyof Quotas): string => `(option quotas: ${option} of the server)`;

/** The usage of one identity. */
export class Account {
  sessions = 0;
  limits: Quotas = {};
  #exposedBytes = 0;
  #calls: TokenBucket | undefined;
  #bytes: TokenBucket | undefined;

  /** Sets the limits that apply from now on. */
  grant(quotas: Quotas, nowMs: number): void {
    this.limits = quotas;
    this.#calls = changed(this.#calls, quotas.callsPerSecondMax, nowMs);
    this.#bytes = changed(this.#bytes, quotas.bytesPerSecondMax, nowMs);
  }

  /**
   * Returns the reason why a call is not run. When the call may run, counts it and returns undefined. The
   * bytes of the call count in both cases.
   */
  refusal(path: string, nowMs: number): Refusal | undefined {
    const over = this.exceeded(nowMs);
    if (over !== undefined) return exhausted(path, over);
    const calls = this.#calls;
    if (calls !== undefined && !calls.has(nowMs)) {
      const text = `this client has made its ${calls.perSecond} calls of this second ${named('callsPerSecondMax')}`;
      return exhausted(path, text);
    }
    calls?.take(1);
    return undefined;
  }

  /** Returns the reason why no more bytes may be sent or received, or undefined when they may. */
  exceeded(nowMs: number): string | undefined {
    const bytes = this.#bytes;
    if (bytes === undefined || bytes.has(nowMs)) return undefined;
    return `this client has used up its ${bytes.perSecond} bytes a second ${named('bytesPerSecondMax')}`;
  }

  /**
   * Counts memory that is exposed to the identity. Throws when the limit would be exceeded; nothing is
   * counted then.
   */
  expose(bytes: number): void {
    const { exposedBytesMax = Infinity } = this.limits;
    if (this.#exposedBytes + bytes > exposedBytesMax) {
      const text = `${bytes} more bytes would be exposed to this client, which has ${this.#exposedBytes} of ${exposedBytesMax} ${named('exposedBytesMax')}`;
      throw new RpcError(Status.RESOURCE_EXHAUSTED, text, { processed: 'no' });
    }
    this.#exposedBytes += bytes;
  }

  /** Runs when memory that `expose` counted is no longer exposed. */
  unexpose(bytes: number): void {
    this.#exposedBytes -= bytes;
  }

  /** Counts sent or received bytes. */
  spend(bytes: number): void {
    this.#bytes?.take(bytes);
  }
}

function changed(
  bucket: TokenBucket | undefined,
  perSecond: number | undefined,
  nowMs: number,
): TokenBucket | undefined {
  if (perSecond === undefined) return undefined;
  if (bucket === undefined) return new TokenBucket(perSecond, nowMs);
  bucket.change(perSecond, nowMs);
  return bucket;
}

export class Accounts {
  readonly #quotasOf: QuotasOf;
  readonly #now: () => number;
  readonly #open = new Map<string | undefined, Account>();
  /**
   * Accounts of identities that have no session any more but may still owe bytes. The oldest comes first.
   */
  readonly #closed = new Map<string | undefined, Account>();

  /** Throws for invalid quotas. */
  constructor(given: Quotas | QuotasOf, now: () => number = () => clockMs()) {
    this.#now = now;
    if (typeof given === 'function') {
      this.#quotasOf = given;
    } else {
      const quotas = checkedOptions<Quotas>('createServer: quotas', given, quotaRules);
      this.#quotasOf = () => quotas;
    }
  }

  /** Number of known identities. */
  get size(): number {
    return this.#open.size + this.#closed.size;
  }

  /** Counts a connection until it is closed. Throws when its identity has too many connections. */
  enter(peer: PeerInfo, duplex: Duplex): Account {
    if (duplex.closed) throw new Error('the connection was closed');
    const quotas = this.#ask(peer);
    const { identity } = peer;
    const account = this.#open.get(identity) ?? this.#closed.get(identity) ?? new Account();
    const { sessionsMax = Infinity } = quotas;
    if (account.sessions >= sessionsMax) {
      const text = `this client has ${account.sessions} connections already ${named('sessionsMax')}`;
      throw new RpcError(Status.RESOURCE_EXHAUSTED, text, { processed: 'no' });
    }
    account.grant(quotas, this.#now());
    ++account.sessions;
    this.#closed.delete(identity);
    this.#open.set(identity, account);
    duplex.once('close', () => this.#leave(identity, account));
    return account;
  }

  #ask(peer: PeerInfo): Quotas {
    try {
      const given: unknown = inRoot(this.#quotasOf, undefined, peer);
      const later = promiseOf(given);
      later?.catch(() => undefined);
      if (later !== undefined) throw new TypeError('it has returned a promise');
      return checkedOptions<Quotas>('quotas', given as object | undefined, quotaRules);
    } catch (error) {
      const text = 'the server cannot tell what this client may use (option quotas of the server)';
      throw new NotAdmitted(Status.UNAVAILABLE, text, textOf(error));
    }
  }

  #leave(identity: string | undefined, account: Account): void {
    if (--account.sessions > 0) return;
    this.#open.delete(identity);
    this.#closed.set(identity, account);
    if (this.#closed.size <= limits.quotaAccountsClosed) return;
    const [oldest] = this.#closed.keys();
    this.#closed.delete(oldest);
  }
}
