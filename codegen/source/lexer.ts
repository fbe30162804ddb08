/**
 * Splits a .proto into tokens with their exact positions and the comments around them. It never fails.
 * Invalid text becomes a token of kind `bad` with the reason, which the parser reports. The parser calls it
 * once per file.
 */

export interface Token {
  readonly kind: 'name' | 'int' | 'float' | 'string' | 'symbol' | 'bad' | 'end';
  readonly text: string;
  /** The offset in UTF-16 units from the start of the file. */
  readonly offset: number;
  /** The line, counted from 1. */
  readonly line: number;
  /** The column, counted from 1. */
  readonly column: number;
  /** The comment of the element that begins here. */
  leading?: string;
  /** The comment of the element that ends here. */
  trailing?: string;
  /** The error of a bad token. */
  readonly reason?: string;
}

const blank = /[ \t\r\v\f]*/y;
const name = /[A-Za-z_]\w*/y;
const numberStart = /\d|\.\d/y;
const numberPart = /[\w.]+/y;
const sign = /[+-]/y;
const lineComment = /\/\/([^\n]*\n?)/y;
const hashComment = /#[^\n]*/y;
const blockComment = /\/\*([\s\S]*?)\*\//y;
const integer = /^(?:0[xX][\da-fA-F]+|0[0-7]*|[1-9]\d*)$/;
const decimal = /^(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;

class Lexer {
  #at: number;
  #line = 1;
  #lineStart: number;
  /**
   * Number of open braces in the value of an option. Such a value is text format, which also has comments
   * with `#`.
   */
  #braces = 0;
  readonly #source: string;
  readonly tokens: Token[] = [];

  constructor(source: string) {
    this.#source = source;
    this.#at = source.startsWith('\uFEFF') ? 1 : 0;
    this.#lineStart = this.#at;
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#source);
    if (match === null) return undefined;
    const whole = match[0];
    for (let i = whole.indexOf('\n'); i !== -1; i = whole.indexOf('\n', i + 1)) {
      this.#line++;
      this.#lineStart = this.#at + i + 1;
    }
    this.#at += whole.length;
    return match[1] ?? whole;
  }

  #newline(): boolean {
    if (this.#source[this.#at] !== '\n') return false;
    this.#line++;
    this.#lineStart = ++this.#at;
    return true;
  }

  /**
   * Matches digits, points, letters, and the sign of an exponent. It matches in steps, because a regular
   * expression with alternatives in a loop runs out of stack on millions of digits.
   */
  #number(): string | undefined {
    const start = this.#at;
    if (this.#take(numberStart) === undefined) return undefined;
    do this.#take(numberPart);
    while (/[eE]/.test(this.#source[this.#at - 1] ?? '') && this.#take(sign) !== undefined);
    return this.#source.slice(start, this.#at);
  }

  /**
   * Matches a string with its quotes, if the string ends on its line. This function uses a loop instead of a
   * regular expression for the same reason: strings may have many megabytes.
   */
  #quoted(): string | undefined {
    const source = this.#source;
    const start = this.#at;
    const quote = source[start];
    if (quote !== '"' && quote !== "'") return undefined;
    for (let at = start + 1; at < source.length; at++) {
      const char = source[at];
      if (char === '\n') return undefined;
      if (char === '\\' && source[at + 1] !== '\n') at++;
      else if (char === '\\') return undefined;
      else if (char === quote) {
        this.#at = at + 1;
        return source.slice(start, this.#at);
      }
    }
    return undefined;
  }

  #token(): Token {
    const offset = this.#at;
    const line = this.#line;
    const common = { offset, line, column: offset - this.#lineStart + 1 };
    if (offset >= this.#source.length) return { kind: 'end', text: '', ...common };
    const plain = this.#take(name);
    if (plain !== undefined) return { kind: 'name', text: plain, ...common };
    const digits = this.#number();
    if (digits !== undefined) {
      if (integer.test(digits)) return { kind: 'int', text: digits, ...common };
      if (decimal.test(digits)) return { kind: 'float', text: digits, ...common };
      return { kind: 'bad', text: digits, ...common, reason: `${digits} is neither a number nor a name` };
    }
    const quoted = this.#quoted();
    if (quoted !== undefined) return { kind: 'string', text: quoted, ...common };
    const char = String.fromCodePoint(this.#source.codePointAt(offset) ?? 0);
    this.#at += char.length;
    if (char === '"' || char === "'") {
      this.#take(/[^\n]*/y);
      return { kind: 'bad', text: char, ...common, reason: 'this string has no end on its line' };
    }
    if (char === '/' && this.#source[this.#at] === '*') {
      this.#take(/[\s\S]*/y);
      return { kind: 'bad', text: '/*', ...common, reason: 'this comment has no end' };
    }
    if (/[;{}()[\]<>=,.:+/-]/.test(char)) return { kind: 'symbol', text: char, ...common };
    return { kind: 'bad', text: char, ...common, reason: `a .proto has no ${JSON.stringify(char)} here` };
  }

  /**
   * Applies protoc's rule for comments. A comment on the line of a token, or directly below it and followed
   * by an empty line, belongs to the element that ends there. A comment directly above a token belongs to the
   * element that begins there. All other comments are ignored.
   */
  #comments(previous: Token | undefined): string | undefined {
    let held: { text: string; line: boolean } | undefined;
    let toPrevious = previous !== undefined;
    const flush = (): void => {
      if (held !== undefined && toPrevious && previous !== undefined) {
        previous.trailing = held.text;
        toPrevious = false;
      }
      held = undefined;
    };
    if (previous !== undefined) {
      this.#take(blank);
      const line = this.#take(lineComment);
      if (line !== undefined) {
        held = { text: line, line: true };
        flush();
      } else {
        const block = this.#take(blockComment);
        if (block !== undefined) {
          this.#take(blank);
          // A token follows on the same line, so it is unclear to which element the comment belongs.
          if (!this.#newline()) return undefined;
          held = { text: unindent(block), line: false };
          flush();
        } else if (!this.#newline()) return undefined;
      }
    }
    for (;;) {
      this.#take(blank);
      const line = this.#take(lineComment);
      if (line !== undefined) {
        if (held?.line === false) flush();
        held = { text: (held?.text ?? '') + line, line: true };
        continue;
      }
      const block = this.#take(blockComment);
      if (block !== undefined) {
        flush();
        held = { text: unindent(block), line: false };
        this.#take(blank);
        this.#newline();
      } else if (this.#newline()) {
        flush();
        toPrevious = false;
      } else {
        const next = this.#source[this.#at];
        if (next === undefined || next === '}' || next === ']' || next === ')') flush();
        return held?.text;
      }
    }
  }

  run(): Token[] {
    for (let previous: Token | undefined; ; ) {
      const leading = this.#comments(previous);
      // `comments` skips comments between two tokens of a line one at a time.
      while (
        this.#take(blank) ||
        this.#take(lineComment) !== undefined ||
        (this.#braces > 0 && this.#take(hashComment) !== undefined) ||
        this.#take(blockComment) !== undefined ||
        this.#newline()
      );
      const token = this.#token();
      if (leading !== undefined) token.leading = leading;
      this.tokens.push(token);
      if (token.text === '{' && (this.#braces > 0 || previous?.text === '=')) this.#braces++;
      else if (token.text === '}' && this.#braces > 0) this.#braces--;
      previous = token;
      if (token.kind === 'end') return this.tokens;
    }
  }
}

/** Returns the text of a block comment, without the `*` at the start of its lines. */
function unindent(block: string): string {
  return block.replace(/\n[ \t\r\v\f]*\*?/g, '\n');
}

export function tokenize(source: string): Token[] {
  return new Lexer(source).run();
}
