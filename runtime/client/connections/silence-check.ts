/**
 * Checks a connection on which calls end at their deadlines while the server sends nothing. The check first
 * pings the server on the sideband connection. When the server answers, its data connection may still be
 * dead, because a proxy on the way can acknowledge bytes and drop them. The check therefore makes a call on
 * the data connection, too. The checks of an address (silence-checks.ts) run it, on the channel's JS thread.
 *
 * The answers show what the server has read. A server handles both connections in one event loop, so a server
 * that is blocked answers neither of them. A server that answers pings sent after the small call has also
 * read that call. The answer to the call may still be on its way when the first of these pings is answered.
 * Therefore several pings must be answered, with a pause before each of them.
 */
import type { SessionPath } from '../../native/native.ts';
import type { ClientLink } from './client-link.ts';
import { DataProbe } from './data-probe.ts';
import { verifyTimeoutMs } from './limits.ts';

/** Number of pings that the server must have answered since the call on the data connection. */
const laterPings = 3;

/**
 * - `answers`: the server answers on the data connection.
 * - `no pong`: the server answers nothing.
 * - `no data`: the server answers on the sideband connection only.
 * - `unknown`: the call on the data connection could not be sent, or the server has stopped answering pings.
 */
export type Finding = 'answers' | 'no pong' | 'no data' | 'unknown';

export class SilenceCheck {
  /**
   * For the finding `no data`: the progress of the data connection, in bytes, before the small call on it was
   * cancelled. The network acknowledges the frame that cancels the call later, also when a proxy drops it.
   */
  path: SessionPath | undefined;
  readonly #link: ClientLink;
  readonly #onEnd: (finding: Finding) => void;
  /** Number of silences that had ended when this check began. */
  readonly #ends: number;
  #probe: DataProbe | undefined;
  #laterPings = 0;
  #awaitsPong = false;
  #over = false;
  #timer: NodeJS.Timeout | undefined;

  /** Begins the check. `onEnd` is called once, unless the check is stopped before. */
  constructor(link: ClientLink, onEnd: (finding: Finding) => void) {
    this.#link = link;
    this.#onEnd = onEnd;
    this.#ends = link.session.silence.ends;
    this.#ping();
  }

  onPong(): void {
    if (this.#over || !this.#awaitsPong) return;
    this.#awaitsPong = false;
    if (this.#probe === undefined) this.#probe = new DataProbe(this.#link, () => this.#judge());
    else ++this.#laterPings;
    if (this.#link.session.silence.ends !== this.#ends) this.#end('answers');
    else if (this.#probe.end !== undefined) this.#judge();
    else if (this.#laterPings === laterPings) {
      this.path = this.#link.path();
      // Only the end of the call says whether the call was sent.
      this.#probe.cancel();
    } else this.#timer = setTimeout(() => this.#ping(), verifyTimeoutMs).unref();
  }

  /** Ends the check without a finding. */
  stop(): void {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#probe?.cancel();
  }

  #ping(): void {
    this.#awaitsPong = true;
    this.#link.ping(verifyTimeoutMs, () => this.#end(this.#probe === undefined ? 'no pong' : 'unknown'));
  }

  /** Called when the call on the data connection has ended. */
  #judge(): void {
    const heard = this.#link.session.silence.ends !== this.#ends;
    if (heard || this.#probe?.end === 'answered') this.#end('answers');
    else this.#end(this.#probe?.end === 'unsent' ? 'unknown' : 'no data');
  }

  #end(finding: Finding): void {
    if (this.#over) return;
    this.stop();
    this.#onEnd(finding);
  }
}
