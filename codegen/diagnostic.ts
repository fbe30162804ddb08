/**
 * What the generator has to say about its input, with the place. Collected over all files before anything is written; the CLI prints them.
 */

export interface Diagnostic {
  readonly severity: 'error' | 'warning';
  /** As the user named it, or as the include directory and the import make it. */
  readonly file: string;
  /** From 1; 0 when the whole file is meant. */
  readonly line: number;
  /** From 1, in UTF-16 units; 0 when the whole file is meant. */
  readonly column: number;
  /** The offending piece of the source. Empty when the whole file is meant. */
  readonly text: string;
  readonly message: string;
}

/** `file:line:column: error: message`, which editors and terminals turn into a link. */
export function formatDiagnostic(diagnostic: Diagnostic): string {
  const { file, line, column, severity, message } = diagnostic;
  return line === 0
    ? `${file}: ${severity}: ${message}`
    : `${file}:${line}:${column}: ${severity}: ${message}`;
}

/** The input has errors and nothing has been written. `diagnostics` has all that were found, warnings included. */
export class GenerateError extends Error {
  override readonly name = 'GenerateError';
  readonly diagnostics: readonly Diagnostic[];

  constructor(diagnostics: readonly Diagnostic[]) {
    super(diagnostics.map(formatDiagnostic).join('\n'));
    this.diagnostics = diagnostics;
  }
}
