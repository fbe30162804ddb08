/**
 * Replacements of ranges in the text of one file. All other text stays the same, byte for byte, including
 * formatting and comments. `rdma-rpc migrate` uses this file.
 */

export interface Edit {
  readonly start: number;
  /** Position after the last replaced character; equal to `start` for an insertion. */
  readonly end: number;
  readonly text: string;
}

const inOrder = (edits: readonly Edit[]): Edit[] =>
  [...edits].sort((a, b) => a.start - b.start || a.end - b.end);

export const isSame = (a: Edit, b: Edit): boolean => a.start === b.start && a.end === b.end;

/** Returns whether `b` replaces a larger range around `a`. An insertion at the edge of a range is outside. */
export const isWithin = (a: Edit, b: Edit): boolean =>
  a.start === a.end
    ? b.start < a.start && a.end < b.end
    : b.start <= a.start && a.end <= b.end && b.end - b.start > a.end - a.start;

export class Edits {
  readonly #source: string;
  /** Whether the file has CRLF line ends. Inserted text then gets such line ends, too. */
  readonly #crlf: boolean;
  readonly #first: readonly Edit[];
  #edits: Edit[];
  readonly #late: Edit[] = [];

  /** `first` are edits that are made before all others, such as `late` of an earlier attempt. */
  constructor(source: string, first: readonly Edit[] = []) {
    this.#source = source;
    this.#crlf = source.includes('\r\n');
    this.#first = first;
    this.#edits = first.filter((edit) => !first.some((other) => isWithin(edit, other)));
  }

  /**
   * Edits within a range that had already been replaced. These edits have no effect, because the text of that
   * range had already been rendered without them. Another attempt that gets these edits as `first` renders
   * them.
   */
  get late(): readonly Edit[] {
    return this.#late;
  }

  get all(): readonly Edit[] {
    return inOrder(this.#edits);
  }

  /**
   * Replaces a range and drops earlier edits within it. To keep the effect of those edits, create `text` with
   * `render`.
   */
  replace(start: number, end: number, text: string): void {
    if (this.#isLate(start, end, text)) return;
    this.#edits = this.#edits.filter((edit) => edit.start < start || edit.end > end);
    this.#edits.push({ start, end, text: this.#lines(text) });
  }

  /** Inserts text. Several insertions at one position appear in the order of the calls. */
  insert(at: number, text: string): void {
    if (this.#isLate(at, at, text)) return;
    this.#edits.push({ start: at, end: at, text: this.#lines(text) });
  }

  /** Returns whether a larger range around this one has been replaced, and notes the edit. */
  #isLate(start: number, end: number, text: string): boolean {
    const late = { start, end, text: this.#lines(text) };
    if (!this.#edits.some((edit) => isWithin(late, edit))) return false;
    this.#late.push(late);
    return true;
  }

  #lines(text: string): string {
    return this.#crlf ? text.replace(/\r?\n/g, '\r\n') : text;
  }

  /**
   * Returns the text of a range with the edits applied. In a range within a replaced range, these are the
   * edits of earlier attempts.
   */
  render(start = 0, end = this.#source.length): string {
    const inRange = (edit: Edit): boolean => edit.start >= start && edit.end <= end;
    const edits = this.all.filter(inRange);
    const dropped = this.#first.filter(
      (edit) => inRange(edit) && !edits.some((other) => isSame(edit, other) || isWithin(edit, other)),
    );
    const outermost = dropped.filter((edit) => !dropped.some((other) => isWithin(edit, other)));
    let text = '';
    let at = start;
    for (const edit of inOrder([...edits, ...outermost])) {
      text += this.#source.slice(at, edit.start) + edit.text;
      at = edit.end;
    }
    return text + this.#source.slice(at, end);
  }
}
