/**
 * Decides about the silent connections of one address: which of them are checked, and which are left. An
 * Endpoint owns this object and uses it on the channel's JS thread.
 *
 * New calls leave a connection whose server answers nothing, or answers on the sideband connection only.
 * Calls under way stay on the old connection, because the server or the network may only be slow. The old
 * connection ends when no answer has come and no bytes have moved on its data connection for another minute.
 * Otherwise calls without a deadline would wait for ever.
 */
import { clockMs } from '../../clock.ts';
import type { SessionPath } from '../../native/native.ts';
import { Backoff } from './backoff.ts';
import type { ClientLink } from './client-link.ts';
import { hasMoved } from './data-progress.ts';
import { silenceMaxMs, silenceMs } from './limits.ts';
import { type Finding, SilenceCheck } from './silence-check.ts';

export class SilenceChecks {
  readonly #address: string;
  readonly #onLeave: (link: ClientLink, why: string) => void;
  readonly #limit = new Backoff(silenceMs, silenceMaxMs);
  /** Time at which a connection was last left. */
  #leftAtMs = Number.NEGATIVE_INFINITY;
  readonly #running = new Map<ClientLink, SilenceCheck>();
  /** Timers of connections that were left because of their data connection. */
  readonly #left = new Map<ClientLink, NodeJS.Timeout>();

  /** `onLeave` is called when new calls must use another connection. `why` is a text for errors. */
  constructor(address: string, onLeave: (link: ClientLink, why: string) => void) {
    this.#address = address;
    this.#onLeave = onLeave;
  }

  /** Returns the shortest silence, in milliseconds, after which the next connection is checked. */
  nextLimitMs(): number {
    if (clockMs() - this.#leftAtMs > 2 * silenceMaxMs) this.#limit.reset();
    return this.#limit.next();
  }

  /** Checks a silent connection, unless a check of it is running. */
  begin(link: ClientLink): void {
    if (!this.#running.has(link)) this.#check(link, (finding, path) => this.#decide(link, finding, path));
  }

  /** Returns whether a check of the connection is running. */
  checks(link: ClientLink): boolean {
    return this.#running.has(link);
  }

  /** Called for each pong of a connection. */
  onPong(link: ClientLink): void {
    this.#running.get(link)?.onPong();
  }

  /** Called when the connection has ended. */
  stop(link: ClientLink): void {
    clearTimeout(this.#left.get(link));
    this.#left.delete(link);
    this.#running.get(link)?.stop();
    this.#running.delete(link);
  }

  #check(link: ClientLink, onEnd: (finding: Finding, path: SessionPath | undefined) => void): void {
    const check = new SilenceCheck(link, (finding) => {
      this.#running.delete(link);
      onEnd(finding, check.path);
    });
    this.#running.set(link, check);
  }

  #decide(link: ClientLink, finding: Finding, path: SessionPath | undefined): void {
    if (finding === 'answers' || finding === 'unknown') {
      link.session.silence.heard();
      return;
    }
    this.#leftAtMs = clockMs();
    const rest =
      finding === 'no pong'
        ? 'it answers no ping'
        : 'it answers pings on the sideband connection, but nothing on the data connection';
    if (finding === 'no data') this.#await(link, path);
    this.#onLeave(link, `calls to ${this.#address} reached their deadlines, and ${rest}`);
  }

  /**
   * Ends a connection that was left, unless its data connection answers again or its bytes still move.
   * `before` is the progress of its bytes at the last check.
   */
  #await(link: ClientLink, before: SessionPath | undefined): void {
    const { silence } = link.session;
    const { ends } = silence;
    const again = (): void => {
      if (silence.ends !== ends) return;
      this.#check(link, (finding, now) => {
        if (finding === 'no data' && !hasMoved(before, now))
          link.close(
            `nothing comes over the data connection to ${this.#address}, although the server answers on the ` +
              'sideband connection; check the proxies and firewalls on the way',
          );
        else if (finding !== 'answers') this.#await(link, now ?? before);
      });
    };
    this.#left.set(link, setTimeout(again, silenceMaxMs).unref());
  }
}
