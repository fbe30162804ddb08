/**
 * Opens one connection to a server as a channel does, and measures each step. `rdma-rpc ping` uses this file,
 * once or many times.
 */
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { type Opened, openConnection } from '../../runtime/control/handshake/client-handshake.ts';
import type { LocalSide } from '../../runtime/control/handshake/session-setup.ts';
import { type Address, formatAddress, type TcpAddress } from '../../runtime/control/socket/address.ts';
import { type Dial, patient, socketDial } from '../../runtime/control/socket/dial.ts';
import type { TlsDial } from '../../runtime/control/tls/tls-client.ts';
import { withFlagsNamed } from '../server/tls-flags.ts';
import { adviceFor, type Stop, TooLate } from './advice.ts';
import { Session } from './session.ts';
import { type TimedStep, Timeline } from './steps.ts';

/** The error when a server was not reached, or has not answered. */
export class Stopped extends Error {
  readonly step: Stop;
  /** Advice for the user. */
  readonly next: string;

  constructor(step: Stop, cause: Error) {
    super(withFlagsNamed(cause.message), { cause });
    this.step = step;
    this.next = adviceFor(step, cause);
  }
}

export interface Target {
  readonly address: Address;
  readonly side: LocalSide;
  /** Undefined without TLS. */
  readonly tls: TlsDial | undefined;
  /** Time limit in milliseconds until the session is open, and for each round trip. */
  readonly timeoutMs: number;
  /**
   * Returns the addresses of a name. The default is `lookupAll`; tests pass a function of their own.
   */
  readonly lookup: (host: string) => Promise<readonly string[]>;
}

/** Returns the addresses of a host by the system's rules, which use the hosts file first, then DNS. */
export async function lookupAll(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

const tooLate = (timeoutMs: number): TooLate => new TooLate(`no answer within ${timeoutMs} ms (--timeout)`);

const isName = (address: Address): address is TcpAddress =>
  address.kind === 'tcp' && isIP(address.host) === 0;

/** Settles as the promise does, unless the signal is aborted first. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    promise.then(resolve, reject);
  });
}

/** Dials one address after another, until one is connected. Each address has an equal share of the time. */
function dialOf(addresses: readonly Address[], { tls, timeoutMs }: Target, timeline: Timeline): Dial {
  return async (signal, onConnected) => {
    for (const [at, address] of addresses.entries()) {
      const shareMs = Math.ceil(timeoutMs / addresses.length);
      const share = new AbortController();
      const timer = setTimeout(() => share.abort(tooLate(shareMs)), shareMs);
      let connected = false;
      try {
        return await patient(socketDial(address, tls))(AbortSignal.any([signal, share.signal]), () => {
          connected = true;
          clearTimeout(timer);
          onConnected?.();
        });
      } catch (error) {
        const isLast = at === addresses.length - 1;
        if (connected || isLast || signal.aborted) throw error;
        timeline.end('connect', { about: formatAddress(address), failed: (error as Error).message });
      } finally {
        clearTimeout(timer);
      }
    }
    throw new Error('the name has no address');
  };
}

/**
 * Resolves with an open session. Rejects with Stopped, which names the step. It also rejects when `signal` is
 * aborted first.
 */
export async function reach(target: Target, timeline: Timeline, signal?: AbortSignal): Promise<Session> {
  const { address, side, timeoutMs } = target;
  const limit = new AbortController();
  const interrupt = (): void => limit.abort(new Error('interrupted'));
  signal?.addEventListener('abort', interrupt, { once: true });
  const timer = setTimeout(() => limit.abort(tooLate(timeoutMs)), timeoutMs);
  let addresses: Address[] = [address];
  let opened: Opened;
  try {
    if (isName(address)) {
      const hosts = await unlessAborted(target.lookup(address.host), limit.signal);
      addresses = hosts.map((host) => ({ ...address, host }));
      timeline.end('connect', { about: addresses.map((each) => formatAddress(each)).join(', ') });
    }
    opened = await openConnection(
      dialOf(addresses, target, timeline),
      { ...side, onStep: timeline.take },
      formatAddress(address),
      limit.signal,
    );
  } catch (error) {
    // If the limit has closed a link, report the limit's error instead of the link's.
    const why = limit.signal.aborted ? (limit.signal.reason as Error) : (error as Error);
    throw new Stopped(timeline.current, why);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', interrupt);
  }
  return new Session(opened, timeoutMs);
}

/** Begins the timeline of a connection. If the address has a name, the first step resolves it. */
export function timelineFor({ address, tls }: Target, onStep?: (step: TimedStep) => void): Timeline {
  return new Timeline(isName(address) ? 'resolve' : 'connect', tls !== undefined, onStep);
}

/** Resolves when the server has answered the first ping, which shows that it has accepted the session. */
export async function firstAnswer(session: Session, timeline: Timeline): Promise<void> {
  try {
    await session.sideband();
    timeline.end('answer');
  } catch (error) {
    throw new Stopped('answer', error as Error);
  }
}
