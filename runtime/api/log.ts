/**
 * Where the runtime's few log lines go. Without a `log` option, what deserves attention is a warning of Node's; the rest is for
 * NODE_DEBUG=rdma-rpc. None is written per call.
 */
import { debuglog } from 'node:util';
import { logLinesPerSecond } from '../limits.ts';

export type Log = (line: string) => void;

let second = 0;
let lines = 0;

/** A peer can cause these lines, so there are only so many a second. */
export const warn: Log = (line) => {
  const now = Math.floor(performance.now() / 1000);
  if (now !== second) {
    second = now;
    lines = 0;
  }
  if (++lines > logLinesPerSecond) return;
  const text = lines === logLinesPerSecond ? `${line} (further lines of this second are left out)` : line;
  process.emitWarning(text, 'RdmaRpcWarning');
};

const debug = debuglog('rdma-rpc');

/** For the line that tells which fabric was chosen; `skipped`: another one should have connected, and did not. */
export function fabricLog(log: Log | undefined): (line: string, skipped: boolean) => void {
  if (log !== undefined) return log;
  return (line, skipped) => {
    if (skipped) warn(line);
    else debug('%s', line);
  };
}
