/** Where the runtime's few log lines go unless the user gives a `log` option: Node's warnings. None is written per call. */
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
