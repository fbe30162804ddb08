/**
 * What may be printed of what others say, and output that nobody takes: standard output that is closed or
 * full ends the command, since all else it would do is print; a file of the user's is told by its name.
 * Called by the commands.
 */
import { writeFileSync } from 'node:fs';

/**
 * Writes all of it, also where the system takes a part at a time. Throws an Error with the name of the file,
 * which may be open already.
 */
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

/** What a server says goes to a terminal: nothing in it may be a command for that. */
export function printable(text: string): string {
  return text.replace(/(?!\n)\p{Cc}/gu, '\ufffd');
}

/** The same for text that has one line of its own, and must not look like another, or run the other way. */
export function printableLine(text: string): string {
  return printable(text).replace(/[\n\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, '\ufffd');
}

/**
 * JSON for standard output, which may be a terminal: what JSON.stringify leaves as it is and a terminal may
 * take for a command, or for the end of a line, is escaped. The values stay the same.
 */
export function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(
    /(?!\n)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
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
