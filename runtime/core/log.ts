/**
 * Writes the few log lines of the runtime. Without a `log` option, important lines become Node warnings, and
 * other lines are shown with NODE_DEBUG=rdma-rpc. A call writes no line.
 */
import { debuglog } from 'node:util';
import { clockMs } from '../clock.ts';
import { logLinesPerSecond, logPeersMax } from '../limits.ts';
import { guardedInRoot } from './foreign.ts';
import type { Warn } from './warnings.ts';

export type Log = (line: string) => void;

/**
 * Quotes a text from an unauthenticated peer for a log line. The result is a single line of ASCII characters.
 */
export function quoted(text: string): string {
  const short = text.length <= quotedMax ? text : `${text.slice(0, quotedMax)}…`;
  return JSON.stringify(short).replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const quotedMax = 200;

/**
 * Matches characters that start a new line, change the text direction or control a terminal, together with
 * the white space around them.
 */
const unseen = /\s*[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_C}]\s*/gu;

/** Matches the control characters, which names of peers must not contain. */
export const hasControl = /\p{Cc}/u;

/**
 * Makes a text from a peer, a library or the application fit into one log line, so that the text cannot forge
 * another line.
 */
export const oneLine = (text: string): string => text.trim().replace(unseen, ' ');

/** Writes lines that peers can cause and influence, limited to a number per second for each kind. */
export class LimitedLog {
  readonly #log: Log;
  #second = 0;
  readonly #lines = new Map<string, number>();

  constructor(log: Log) {
    this.#log = log;
  }

  /**
   * Writes a line, unless too many lines were written in this second. `peer` is the peer that the line
   * describes, such as its address.
   */
  write(line: string, peer: string): void {
    const now = Math.floor(clockMs() / 1000);
    if (now !== this.#second) {
      this.#second = now;
      this.#lines.clear();
    }
    const key = this.#lines.has(peer) || this.#lines.size < logPeersMax ? peer : '';
    const lines = (this.#lines.get(key) ?? 0) + 1;
    this.#lines.set(key, lines);
    if (lines > logLinesPerSecond) return;
    const whole = oneLine(line);
    const text = lines === logLinesPerSecond ? `${whole} (further lines of this second are left out)` : whole;
    guardedInRoot('the function `log`', () => this.#log(text));
  }
}

const warnings = new LimitedLog((text) => process.emitWarning(text, 'RdmaRpcWarning'));
export const warn: Log = (line) => warnings.write(line, '');

const debug = debuglog('rdma-rpc');

/**
 * Returns a function that logs which fabric was chosen. `skipped` is true when a preferred fabric should have
 * connected and did not. The line is composed only when it is written.
 */
export function fabricLog(log: Log | undefined): (line: () => string, skipped: boolean) => void {
  // The line contains text from the other side, so it is cleaned to fit one line.
  if (log !== undefined) return (line) => guardedInRoot('the function `log`', () => log(oneLine(line())));
  return (line, skipped) => {
    if (skipped) warn(line());
    else if (debug.enabled) debug('%s', line());
  };
}

/**
 * Returns a function that writes warnings about handlers to the application's log. The call and the process
 * go on if the log throws.
 */
export function logged(log: Log): Warn {
  return (text, detail) =>
    guardedInRoot('the function `log`', () => log(detail === undefined ? text : `${text}\n${detail}`));
}
