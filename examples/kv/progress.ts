/**
 * Shows the progress of a phase of the load: one changing line on a terminal, and one line per phase
 * elsewhere.
 */

const barCells = 24;

export function showProgress(phase: string, done: number, total: number): void {
  if (process.stderr.isTTY) {
    const full = Math.round((barCells * done) / total);
    const bar = '█'.repeat(full).padEnd(barCells, '░');
    process.stderr.write(
      `\r${phase.padEnd(11)} ${bar} ${Math.floor((100 * done) / total)} % ${done === total ? '\n' : ''}`,
    );
  } else if (done === total) {
    process.stderr.write(`${phase}: ${total.toLocaleString('en-GB')} calls\n`);
  }
}
