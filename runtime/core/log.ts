/**
 * Where the runtime's few log lines go. Without a `log` option, what deserves attention is a warning of
 * Node's; the rest is for NODE_DEBUG=rdma-rpc. None is written per call.
 */
import { debuglog } from 'node:util';
import { clockMs } from '../clock.ts';
import { logLinesPerSecond, logPeersMax } from '../limits.ts';
import { guardedInRoot } from './foreign.ts';
import type { Warn } from './warnings.ts';

export type Log = (line: string) => void;

/** Text of a stranger in a line of the log: in quotes, on one line, with nothing but ASCII. */
export function quoted(text: string): string {
  const short = text.length <= quotedMax ? text : `${text.slice(0, quotedMax)}…`;
  return JSON.stringify(short).replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const quotedMax = 200;

/**
 * Characters that begin a line, turn it around, or are a command to a terminal, with the space beside them.
 */
const unseen = /\s*[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_C}]\s*/gu;

/** Names of peers have none of these. */
export const hasControl = /\p{Cc}/u;

/**
 * What a peer, a library or the application has said, in a line of the log: nobody can write another one into
 * it.
 */
export const oneLine = (text: string): string => text.trim().replace(unseen, ' ');

/**
 * Peers can cause these lines, and say some of what is in them, so there are only so many a second for each.
 */
export class LimitedLog {
  readonly #log: Log;
  #second = 0;
  readonly #lines = new Map<string, number>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** `peer`: whom the line is about, such as its address. */
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
 * For the line that tells which fabric was chosen; `skipped`: another one should have connected, and did not.
 * It is made only where somebody reads it.
 */
export function fabricLog(log: Log | undefined): (line: () => string, skipped: boolean) => void {
  // The other side has said some of it.
  if (log !== undefined) return (line) => guardedInRoot('the function `log`', () => log(oneLine(line())));
  return (line, skipped) => {
    if (skipped) warn(line());
    else if (debug.enabled) debug('%s', line());
  };
}

/**
 * Warnings about handlers, for an application that has a log. One that throws ends neither the call nor the
 * process.
 */
export function logged(log: Log): Warn {
  return (text, detail) =>
    guardedInRoot('the function `log`', () => log(detail === undefined ? text : `${text}\n${detail}`));
}
