/**
 * Makes text of other parties safe to print, and handles output that cannot be written. When standard output
 * is closed or full, the command ends, because its remaining work would only be printed. An error about one
 * of the user's files has the name of that file. The commands call these functions.
 */
import { writeFileSync } from 'node:fs';

/**
 * Writes the whole text, even if the system takes only a part at a time. Throws an Error that names the file.
 * The file may already be open.
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

/** Replaces control characters, because a server's text is printed on a terminal. */
export function printable(text: string): string {
  return text.replace(/(?!\n)\p{Cc}/gu, '\ufffd');
}

/**
 * Does the same as `printable` for text on a line of its own, which must not look like another line or run in
 * the other direction.
 */
export function printableLine(text: string): string {
  return printable(text).replace(/[\n\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, '\ufffd');
}

/**
 * Makes JSON for standard output, which may be a terminal. It escapes characters that JSON.stringify leaves
 * unchanged and that control a terminal or end a line. The escaped text has the same value.
 */
export function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(
    /(?!\n)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Makes the command end when its output is closed. Must be called before anything is printed. */
export function endWithOutput(command: string): void {
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    // A reader that closes the output early, such as `head`, is not an error.
    if (code === 'EPIPE') process.exit();
    console.error(`${command}: the output cannot be written: ${message}`);
    process.exit(1);
  });
  // In this case the error text is lost, but the exit code still shows the failure.
  process.stderr.on('error', () => undefined);
}
