/**
 * Errors and warnings of the generator about its input, with their positions. They are collected over all
 * files before the output is written, and the CLI prints them.
 */

export interface Diagnostic {
  readonly severity: 'error' | 'warning';
  /** The file under the name that the user gave, or a path composed of include directory and import. */
  readonly file: string;
  /** The line, counted from 1; 0 for the whole file. */
  readonly line: number;
  /** The column, counted from 1 in UTF-16 units; 0 for the whole file. */
  readonly column: number;
  /** The part of the source that is wrong. It is empty for the whole file, or for the end of the file. */
  readonly text: string;
  readonly message: string;
  /** The source line that contains the part; undefined for the whole file. */
  readonly sourceLine?: string | undefined;
}

/**
 * A position in the source. Every token of the parser has a position, and a plugin's input contains
 * positions.
 */
export interface Place {
  readonly text: string;
  readonly line: number;
  readonly column: number;
}

/**
 * Characters that control a terminal, start a line or change the text direction. These characters are
 * replaced because sources and names may be untrusted.
 */
const unseen = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_C}]/gu;
const seen = (text: string): string => text.replace(unseen, (each) => (each === '\t' ? each : '\uFFFD'));

/** Returns `file:line:column: error: message`, which editors and terminals turn into a link. */
export function formatDiagnostic(diagnostic: Diagnostic): string {
  const { file, line, column, severity, message } = diagnostic;
  return seen(
    line === 0 ? `${file}: ${severity}: ${message}` : `${file}:${line}:${column}: ${severity}: ${message}`,
  );
}

/**
 * Maximum number of characters of a line around the caret, of a word in a message, and of a part of the
 * source. Input may be one line of megabytes.
 */
const lineMax = 120;
const wordMax = 80;
/** Maximum number of diagnostics per file. If a file has more, most of them have the same cause. */
const perFile = 100;

/**
 * Returns the source line with a caret below it, or an empty text for a whole file. For a long line it shows
 * only the part around the caret.
 */
export function quoteSource({ sourceLine, column, text }: Diagnostic): string {
  if (sourceLine === undefined) return '';
  const place = Math.min(column - 1, sourceLine.length);
  const start = sourceLine.length <= lineMax ? 0 : Math.max(0, place - lineMax / 2);
  const end = Math.min(sourceLine.length, start + lineMax);
  const before = start > 0 ? '…' : '';
  const shown = `${before}${sourceLine.slice(start, end)}${end < sourceLine.length ? '…' : ''}`;
  const room = Math.max(1, Math.min(text.length, end - place));
  // Tabs stay tabs, so that the terminal shows the caret below the text.
  const indent = shown.slice(0, before.length + place - start).replace(/[^\t]/g, ' ');
  return `  ${seen(shown)}\n  ${indent}${'^'.repeat(room)}`;
}

/** Collects the diagnostics of one file. */
export class Reporter {
  /** The file's name for users. */
  readonly file: string;
  readonly #lines: readonly string[];
  readonly #diagnostics: Diagnostic[];
  #count = 0;
  /** Whether an error has been reported. */
  failed = false;

  /** `source` is the file's text. Without it, source lines are not quoted. */
  constructor(file: string, source: string, diagnostics: Diagnostic[]) {
    this.file = file;
    this.#lines = source === '' ? [] : source.replace(/^\uFEFF/, '').split('\n');
    this.#diagnostics = diagnostics;
  }

  report(place: Place, message: string, severity: Diagnostic['severity'] = 'error'): void {
    const { line, column } = place;
    const first = severity === 'error' && !this.failed;
    if (severity === 'error') this.failed = true;
    this.#count++;
    // The first error is reported even after many warnings.
    if (this.#count > perFile && !first) {
      if (this.#count === perFile + 1)
        this.#add(
          { line: 0, column: 0, text: '' },
          'further diagnostics of this file are not shown',
          severity,
        );
      return;
    }
    const sourceLine = this.#lines[line - 1]?.replace(/\r$/, '');
    this.#add(
      { line, column, text: cut(place.text) },
      message.split(' ').map(cut).join(' '),
      severity,
      sourceLine,
    );
  }

  #add(place: Place, message: string, severity: Diagnostic['severity'], sourceLine?: string): void {
    this.#diagnostics.push({ severity, file: this.file, ...place, message, sourceLine });
  }
}

const cut = (text: string): string => (text.length <= wordMax ? text : `${text.slice(0, wordMax - 1)}…`);

/**
 * The input has errors, and no output has been written. `diagnostics` contains all diagnostics, including
 * warnings.
 */
export class GenerateError extends Error {
  override readonly name = 'GenerateError';
  readonly diagnostics: readonly Diagnostic[];

  constructor(diagnostics: readonly Diagnostic[]) {
    super(diagnostics.map(formatDiagnostic).join('\n'));
    this.diagnostics = diagnostics;
  }
}

/**
 * Returns `; did you mean X?` for the candidate most similar to an unknown name, or an empty text when no
 * candidate is similar.
 */
export function suggestion(unknown: string, candidates: Iterable<string>): string {
  let best = '';
  if (unknown.length > wordMax) return best;
  // A third of the letters may be wrong, or two letters may be exchanged.
  let least = Math.max(Math.floor(unknown.length / 3), unknown.length < 4 ? 1 : 2) + 1;
  // At least one letter must be right.
  least = Math.min(least, unknown.length);
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - unknown.length) >= least) continue;
    const distance = editDistance(unknown.toLowerCase(), candidate.toLowerCase());
    if (distance < least) [best, least] = [candidate, distance];
  }
  return best === '' ? '' : `; did you mean ${best}?`;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
