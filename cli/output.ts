/**
 * Output that nobody takes: standard output that is closed or full ends the command, since all else it would do is print; a file of the user's is told by its
 * name. Called by the commands.
 */
import { writeFileSync } from 'node:fs';

/** Writes all of it, also where the system takes a part at a time. Throws an Error with the name of the file, which may be open already. */
export function writeOutput(
  path: string,
  text: string | Uint8Array,
  { file = path, ...options }: { readonly file?: string | number; readonly mode?: number } = {},
): void {
  try {
    writeFileSync(file, text, options);
  } catch (error) {
    throw new Error(`${path} cannot be written: ${(error as Error).message}`);
  }
}

/** Before anything is printed. */
export function endWithOutput(command: string): void {
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    // A reader that has seen enough, such as `head`: no error.
    if (code === 'EPIPE') process.exit();
    console.error(`${command}: the output cannot be written: ${message}`);
    process.exit(1);
  });
  // Nobody reads why something failed; the exit code still tells that it did.
  process.stderr.on('error', () => undefined);
}
