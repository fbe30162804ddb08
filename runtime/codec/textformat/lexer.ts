/**
 * Splits text format into tokens with their positions. parse.ts uses this file and takes one token at a time.
 */
import { CodecError } from '../error.ts';

export interface Token {
  readonly kind: 'name' | 'int' | 'float' | 'string' | 'symbol' | 'end';
  readonly text: string;
  readonly at: number;
}

const blank = /(?:[ \t\r\n\v\f]+|#[^\n]*)/y;
const name = /[A-Za-z_]\w*/y;
/** Hexadecimal and octal come first, because their texts are not valid decimals. */
const int = /0[xX][\da-fA-F]+|0[0-7]*|[1-9]\d*/y;
const float = /(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?[fF]?|\d+[eE][+-]?\d+[fF]?|(?:0|[1-9]\d*)[fF]/y;

export class TextLexer {
  readonly #text: string;
  readonly #typeName: string;
  #at = 0;
  token: Token;

  constructor(text: string, typeName: string) {
    this.#text = text;
    this.#typeName = typeName;
    this.token = this.#read();
  }

  fail(message: string, at = this.token.at): never {
    const before = this.#text.slice(0, at).split('\n');
    throw new CodecError(
      this.#typeName,
      `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}: ${message}`,
    );
  }

  /** Returns the current token and advances to the next. */
  next(): Token {
    const { token } = this;
    this.token = this.#read();
    return token;
  }

  is(symbol: string): boolean {
    return this.token.kind === 'symbol' && this.token.text === symbol;
  }

  accept(symbol: string): boolean {
    if (!this.is(symbol)) return false;
    this.next();
    return true;
  }

  expect(symbol: string): void {
    if (!this.accept(symbol)) this.expected(symbol);
  }

  expected(what: string): never {
    const { kind, text } = this.token;
    const found = text.length > 40 ? `${text.slice(0, 40)}…` : text;
    return this.fail(`expected ${what}, ${kind === 'end' ? 'but the text ends' : `found ${found}`}`);
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  #read(): Token {
    while (this.#take(blank) !== undefined);
    const at = this.#at;
    const token = (kind: Token['kind'], text: string): Token => ({ kind, text, at });
    const first = this.#text[at];
    if (first === undefined) return token('end', '');
    const plain = this.#take(name);
    if (plain !== undefined) return token('name', plain);
    const number = this.#number(at);
    if (number !== undefined) return number;
    if (first === '"' || first === "'") return token('string', this.#quoted(first));
    this.#at++;
    if (!/[{}<>[\]:;,./-]/.test(first)) this.fail(`text format has no ${JSON.stringify(first)} here`, at);
    return token('symbol', first);
  }

  #number(at: number): Token | undefined {
    let kind: Token['kind'] = 'float';
    let text = this.#take(float);
    if (text === undefined) {
      kind = 'int';
      text = this.#take(int);
    }
    if (text === undefined) return undefined;
    // A number directly followed by letters is invalid.
    if (/[\w.]/.test(this.#text[this.#at] ?? '')) this.fail('this is not a number', at);
    return { kind, text, at };
  }

  /** Reads a string including its quotes. A regular expression would run out of stack on megabytes. */
  #quoted(quote: string): string {
    const start = this.#at;
    for (let at = start + 1; at < this.#text.length; at++) {
      const char = this.#text[at];
      if (char === '\n') break;
      if (char === '\\') at++;
      else if (char === quote) {
        this.#at = at + 1;
        return this.#text.slice(start, this.#at);
      }
    }
    return this.fail('this string does not end on its line', start);
  }
}
