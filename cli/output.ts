/** What becomes of the command when nobody takes its output any more: it ends, since all else it would do is print. */

/** Before anything is printed. */
export function endWithOutput(): void {
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    // A reader that has seen enough, such as `head`: no error.
    if (code === 'EPIPE') process.exit();
    console.error(`rdma-rpc: the output cannot be written: ${message}`);
    process.exit(1);
  });
  // Nobody reads why something failed; the exit code still tells that it did.
  process.stderr.on('error', () => undefined);
}
