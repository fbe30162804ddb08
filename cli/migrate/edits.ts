/**
 * Changes to the text of one file: ranges that are replaced. What no edit touches stays byte for byte as it
 * is, formatting and comments included. Used by `rdma-rpc migrate`.
 */

export interface Edit {
  readonly start: number;
  /** Behind the last character that is replaced; equal to `start` for an insertion. */
  readonly end: number;
  readonly text: string;
}

export class Edits {
  readonly #source: string;
  /** Lines end as those of the file do. */
  readonly #crlf: boolean;
  #edits: Edit[] = [];

  constructor(source: string) {
    this.#source = source;
    this.#crlf = source.includes('\r\n');
  }

  get all(): readonly Edit[] {
    return [...this.#edits].sort((a, b) => a.start - b.start || a.end - b.end);
  }

  /** Edits within the range go: `text` was made with `render` where they matter. */
  replace(start: number, end: number, text: string): void {
    this.#edits = this.#edits.filter((edit) => edit.start < start || edit.end > end);
    this.#edits.push({ start, end, text: this.#lines(text) });
  }

  /** Several insertions at one place stay in the order of the calls. */
  insert(at: number, text: string): void {
    this.#edits.push({ start: at, end: at, text: this.#lines(text) });
  }

  #lines(text: string): string {
    return this.#crlf ? text.replace(/\r?\n/g, '\r\n') : text;
  }

  /** The text of a range with the edits in it. */
  render(start = 0, end = this.#source.length): string {
    let text = '';
    let at = start;
    for (const edit of this.all) {
      if (edit.start < start || edit.end > end) continue;
      text += this.#source.slice(at, edit.start) + edit.text;
      at = edit.end;
    }
    return text + this.#source.slice(at, end);
  }
}
