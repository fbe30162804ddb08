/**
 * Reads tokens one by one, for all parts of the parser. A mismatch throws SyntaxFault, which ends the current
 * statement.
 */

import { bytesOfQuoted } from '../../runtime/codec/textformat/escape.ts';
import type { Reporter } from '../diagnostic.ts';
import type { Token } from './lexer.ts';

/** The parser throws this error after it has reported a fault. It unwinds to the next statement. */
export class SyntaxFault extends Error {}

export class TokenStream {
  #at = 0;
  #ended = false;
  /** The token that was taken last. */
  last: Token;
  readonly #tokens: readonly Token[];
  readonly reporter: Reporter;

  constructor(tokens: readonly Token[], reporter: Reporter) {
    this.#tokens = tokens;
    this.reporter = reporter;
    this.last = this.peek();
  }

  peek(ahead = 0): Token {
    return this.#tokens[Math.min(this.#at + ahead, this.#tokens.length - 1)] as Token;
  }

  next(): Token {
    this.last = this.peek();
    if (this.last.kind !== 'end') this.#at++;
    return this.last;
  }

  fail(token: Token, message: string): never {
    // At the end of the file, every open block would report an error; only the first error is shown.
    if (token.kind !== 'end' || !this.#ended) this.reporter.report(token, token.reason ?? message);
    if (token.kind === 'end') this.#ended = true;
    throw new SyntaxFault();
  }

  expected(what: string): never {
    const token = this.peek();
    return this.fail(
      token,
      `expected ${what}, ${token.kind === 'end' ? 'but the file ends' : `found ${token.text}`}`,
    );
  }

  is(text: string, ahead = 0): boolean {
    const token = this.peek(ahead);
    return token.text === text && token.kind !== 'string';
  }

  accept(text: string): boolean {
    if (!this.is(text)) return false;
    this.next();
    return true;
  }

  expect(text: string): Token {
    return this.is(text) ? this.next() : this.expected(text);
  }

  name(what: string): Token {
    return this.peek().kind === 'name' ? this.next() : this.expected(what);
  }

  /** Reads `a.b.C` or, where `absolute` allows it, `.a.b.C`, as one token. */
  dotted(what: string, absolute = true): Token {
    const first = this.peek();
    let text = absolute && this.accept('.') ? '.' : '';
    text += this.name(what).text;
    while (this.is('.') && this.peek(1).kind === 'name') {
      this.next();
      text += `.${this.next().text}`;
    }
    return { ...first, kind: 'name', text };
  }

  integer(what: string): { token: Token; value: number } {
    const first = this.peek();
    const negative = this.accept('-');
    if (this.peek().kind !== 'int') this.expected(what);
    const { text } = this.next();
    const value = Number(/^0\d/.test(text) ? `0o${text.slice(1)}` : text);
    return { token: { ...first, text: (negative ? '-' : '') + text }, value: negative ? 0 - value : value };
  }

  /** Reads one or more adjacent string literals, and returns their bytes. */
  string(what: string): { token: Token; bytes: Buffer } {
    if (this.peek().kind !== 'string') this.expected(what);
    const token = this.peek();
    const parts: Uint8Array[] = [];
    while (this.peek().kind === 'string') {
      const literal = this.next();
      const decoded = bytesOfQuoted(literal.text.slice(1, -1), 'replaced');
      if (typeof decoded === 'string') this.fail(literal, decoded);
      parts.push(decoded);
    }
    return { token, bytes: Buffer.concat(parts) };
  }

  /** Recovers after a fault: skips to the end of the statement, or to the brace that ends its block. */
  recover(): void {
    for (let depth = 0; ; this.next()) {
      if (this.peek().kind === 'end') return;
      if (this.is('{')) depth++;
      else if (this.is('}') && --depth < 0) return;
      else if (depth === 0 && (this.is('}') || this.is(';'))) {
        this.next();
        return;
      }
    }
  }
}
