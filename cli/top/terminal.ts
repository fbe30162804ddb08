/**
 * A full screen of the terminal during a command. It shows lines, reads keys, and restores the terminal at
 * every kind of exit. It uses plain ANSI with an alternate screen, and no library.
 */

/** Wrapping is turned off, because a character may be wider than one column. */
const enter = '\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[H\u001b[2J';
const leave = '\u001b[?7h\u001b[?25h\u001b[?1049l';
const home = '\u001b[H';
/**
 * This escape sequence is written in front of a line. Behind a line as wide as the screen, the sequence would
 * clear the last character.
 */
const clearToEndOfLine = '\u001b[K';
const clearBelow = '\u001b[J';
/** In raw mode ^C is a key. */
const interrupt = '\u0003';

export interface Terminal {
  readonly columns: number;
  readonly rows: number;
  show(lines: readonly string[]): void;
  close(): void;
}

/**
 * Opens the terminal for drawing, and reads its keys. `quit` is called for q, ^C, and signals that end the
 * command. `again` is called when the size of the terminal has changed.
 */
export function openTerminal(quit: () => void, again: () => void): Terminal {
  const { stdin, stdout } = process;
  const key = (bytes: Buffer): void => {
    const text = bytes.toString('latin1');
    if (text.includes('q') || text.includes('Q') || text.includes(interrupt)) quit();
  };
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const reset = (): void => void stdout.write(leave);
  const raw = stdin.isTTY === true;
  if (raw) {
    stdin.setRawMode(true);
    stdin.on('data', key);
    stdin.resume();
  }
  stdout.on('resize', again);
  for (const signal of signals) process.on(signal, quit);
  // This also runs after an uncaught exception.
  process.on('exit', reset);
  stdout.write(enter);
  return {
    get columns() {
      return Math.max(20, stdout.columns);
    },
    get rows() {
      return Math.max(2, stdout.rows);
    },
    show(lines) {
      // The rest of the screen is cleared first, for the same reason.
      stdout.write(`${home}${clearBelow}${lines.map((line) => clearToEndOfLine + line).join('\r\n')}`);
    },
    close() {
      reset();
      process.off('exit', reset);
      for (const signal of signals) process.off(signal, quit);
      stdout.off('resize', again);
      if (!raw) return;
      stdin.off('data', key);
      stdin.setRawMode(false);
      stdin.pause();
    },
  };
}
