/**
 * What the generator has to say about its input, with the place. Collected over all files before anything is
 * written; the CLI prints them.
 */

export interface Diagnostic {
  readonly severity: 'error' | 'warning';
  /** As the user named it, or as the include directory and the import make it. */
  readonly file: string;
  /** From 1; 0 when the whole file is meant. */
  readonly line: number;
  /** From 1, in UTF-16 units; 0 when the whole file is meant. */
  readonly column: number;
  /** The offending piece of the source. Empty when the whole file is meant, or its end. */
  readonly text: string;
  readonly message: string;
  /** The line of the source that has it; undefined when the whole file is meant. */
  readonly sourceLine?: string | undefined;
}

/** Where something is: what every token of the parser is, and what a plugin knows of its input. */
export interface Place {
  readonly text: string;
  readonly line: number;
  readonly column: number;
}

/** Commands to a terminal, and what begins a line or turns it around: sources and names are anybody's. */
const unseen = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_C}]/gu;
const seen = (text: string): string => text.replace(unseen, (each) => (each === '\t' ? each : '\uFFFD'));

/** `file:line:column: error: message`, which editors and terminals turn into a link. */
export function formatDiagnostic(diagnostic: Diagnostic): string {
  const { file, line, column, severity, message } = diagnostic;
  return seen(
    line === 0 ? `${file}: ${severity}: ${message}` : `${file}:${line}:${column}: ${severity}: ${message}`,
  );
}

/**
 * Characters of a line around the caret, of a word in a message, and of a piece of source: input may be one
 * line of megabytes.
 */
const lineMax = 120;
const wordMax = 80;
/** Diagnostics of one file: who has more has one cause for most of them. */
const perFile = 100;

/**
 * The line that is meant with a caret below, or nothing when there is none. Of a long line what is around the
 * caret.
 */
export function quoteSource({ sourceLine, column, text }: Diagnostic): string {
  if (sourceLine === undefined) return '';
  const place = Math.min(column - 1, sourceLine.length);
  const start = sourceLine.length <= lineMax ? 0 : Math.max(0, place - lineMax / 2);
  const end = Math.min(sourceLine.length, start + lineMax);
  const before = start > 0 ? '…' : '';
  const shown = `${before}${sourceLine.slice(start, end)}${end < sourceLine.length ? '…' : ''}`;
  const room = Math.max(1, Math.min(text.length, end - place));
  // Tabs stay tabs, so that the caret is where the terminal puts the text.
  const indent = shown.slice(0, before.length + place - start).replace(/[^\t]/g, ' ');
  return `  ${seen(shown)}\n  ${indent}${'^'.repeat(room)}`;
}

/** Collects what is said about one file. */
export class Reporter {
  /** As people know the file. */
  readonly file: string;
  readonly #lines: readonly string[];
  readonly #diagnostics: Diagnostic[];
  #count = 0;
  /** An error has been reported. */
  failed = false;

  /** `source` is the file's text; without it no lines are quoted. */
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
    // An error is never lost behind warnings.
    if (this.#count > perFile && !first) {
      if (this.#count === perFile + 1)
        this.#add({ line: 0, column: 0, text: '' }, 'and more, which are not shown', severity);
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
 * The input has errors and nothing has been written. `diagnostics` has all that were found, warnings
 * included.
 */
export class GenerateError extends Error {
  override readonly name = 'GenerateError';
  readonly diagnostics: readonly Diagnostic[];

  constructor(diagnostics: readonly Diagnostic[]) {
    super(diagnostics.map(formatDiagnostic).join('\n'));
    this.diagnostics = diagnostics;
  }
}

/** `; did you mean X?` for the candidate most like a name that is unknown; empty when none is like it. */
export function suggestion(unknown: string, candidates: Iterable<string>): string {
  let best = '';
  if (unknown.length > wordMax) return best;
  // A third of the letters may be wrong, and two that have changed places.
  let least = Math.max(Math.floor(unknown.length / 3), unknown.length < 4 ? 1 : 2) + 1;
  // Something has to be left of the name.
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
