/**
 * Where everything in a .proto is declared: a light walk over its tokens that notes names, types and numbers and passes over the rest. It
 * accepts more than the language does, since protobufjs is the judge of the grammar; it only has to answer "where?".
 */
import type { Token } from './old-lexer.ts';

export interface Declaration {
  readonly kind: 'message' | 'enum' | 'service' | 'field' | 'oneof' | 'value' | 'method' | 'extend';
  /** Names from the outermost message to this one, without the package: `Order.Item.count`. Fields of a oneof belong to the message. */
  readonly path: string;
  readonly parent: string;
  readonly name: Token;
  /** Field number or enum value; of a negative one the token of the digits. */
  readonly number?: Token;
  /** A field's type (of a map: of its values), a method's request. */
  readonly type?: Token;
  /** A method's response. */
  readonly response?: Token;
}

export interface Declarations {
  readonly all: readonly Declaration[];
  /** The value of `syntax = …` or `edition = …`. */
  readonly syntax?: Token;
  readonly edition?: Token;
  readonly imports: readonly { readonly path: Token; readonly public: boolean }[];
  /** Names of groups, which proto3 does not have but the parser takes. */
  readonly groups: readonly Token[];
  readonly end: Token;
}

const labels = new Set(['optional', 'required', 'repeated', 'stream']);

class Walker {
  private at = 0;
  readonly all: Declaration[] = [];
  readonly imports: { path: Token; public: boolean }[] = [];
  readonly groups: Token[] = [];
  syntax: Token | undefined;
  edition: Token | undefined;
  private readonly tokens: readonly Token[];
  readonly end: Token;

  constructor(tokens: readonly Token[], end: Token) {
    this.tokens = tokens;
    this.end = end;
  }

  private peek(ahead = 0): Token {
    return this.tokens[this.at + ahead] ?? this.end;
  }

  private next(): Token {
    const token = this.peek();
    this.at++;
    return token;
  }

  private add(
    kind: Declaration['kind'],
    parent: string,
    name: Token,
    more: Partial<Declaration> = {},
  ): string {
    const path = parent === '' ? name.text : `${parent}.${name.text}`;
    this.all.push({ kind, path, parent, name, ...more });
    return path;
  }

  /** Passes over the rest of a statement: to its `;`, or over the block it ends with. */
  private skipStatement(): void {
    for (let depth = 0; this.at < this.tokens.length; ) {
      const { text } = this.next();
      if (text === '{') depth++;
      else if (text === '}') {
        depth--;
        if (depth <= 0 && this.peek().text !== ';' && this.peek().text !== ']' && this.peek().text !== ',')
          return;
      } else if (text === ';' && depth <= 0) return;
    }
  }

  /** Statements up to the closing brace (or the end of the file). */
  block(scope: string, statement: (scope: string) => void): void {
    while (this.at < this.tokens.length) {
      if (this.peek().text === '}') {
        this.at++;
        return;
      }
      if (this.peek().text === ';') this.at++;
      else statement(scope);
    }
  }

  readonly top = (scope: string): void => {
    const { text } = this.peek();
    if (text === 'syntax' && this.peek(1).text === '=') this.syntax = this.peek(2);
    if (text === 'edition' && this.peek(1).text === '=') this.edition = this.peek(2);
    if (text === 'import') {
      const modified = /^["']/.test(this.peek(1).text) ? 0 : 1;
      this.imports.push({ path: this.peek(1 + modified), public: this.peek(1).text === 'public' });
    }
    if (!this.nested(scope)) this.skipStatement();
  };

  /** Declarations that have a block. */
  private nested(scope: string): boolean {
    const { text } = this.peek();
    if (this.peek(2).text !== '{') return false;
    if (text !== 'message' && text !== 'enum' && text !== 'service' && text !== 'extend') return false;
    this.at++;
    const name = this.next();
    this.at++;
    const path = this.add(text, scope, name);
    const inside = { message: this.message, enum: this.value, service: this.method, extend: this.message }[
      text
    ];
    this.block(text === 'extend' ? `${path} (extended)` : path, inside);
    return true;
  }

  private readonly message = (scope: string): void => {
    const { text } = this.peek();
    if (this.nested(scope)) return;
    if (text === 'oneof' && this.peek(2).text === '{') {
      this.at++;
      this.add('oneof', scope, this.next());
      this.at++;
      this.block(scope, this.message);
      return;
    }
    const keyword = text === 'option' || text === 'reserved' || text === 'extensions';
    if (!keyword || this.peek(2).text === '=') this.field(scope);
    this.skipStatement();
  };

  private field(scope: string): void {
    let ahead = labels.has(this.peek().text) && this.peek(1).text !== '=' ? 1 : 0;
    let type = this.peek(ahead);
    if (type.text === 'map' && this.peek(ahead + 1).text === '<') {
      type = this.peek(ahead + 4);
      ahead += 5;
    }
    const name = this.peek(ahead + 1);
    if (this.peek(ahead + 2).text !== '=') return;
    if (type.text === 'group' && this.peek(ahead + 4).text === '{') this.groups.push(name);
    this.add('field', scope, name, { type, number: this.peek(ahead + 3) });
  }

  private readonly value = (scope: string): void => {
    if (this.peek(1).text === '=') {
      const number = this.peek(this.peek(2).text === '-' ? 3 : 2);
      this.add('value', scope, this.peek(), { number });
    }
    this.skipStatement();
  };

  private readonly method = (scope: string): void => {
    if (this.peek().text === 'rpc') {
      const types: Token[] = [];
      for (let ahead = 2; ![';', '{', ''].includes(this.peek(ahead).text); ahead++) {
        const token = this.peek(ahead);
        if (!['(', ')', 'stream', 'returns'].includes(token.text)) types.push(token);
      }
      this.add('method', scope, this.peek(1), {
        type: types[0] ?? this.peek(1),
        response: types[1] ?? this.peek(1),
      });
    }
    this.skipStatement();
  };
}

export function findDeclarations(tokens: readonly Token[]): Declarations {
  const last = tokens.at(-1);
  const end: Token = {
    text: '',
    offset: last === undefined ? 0 : last.offset + last.text.length,
    line: last?.line ?? 1,
    column: last === undefined ? 1 : last.column + last.text.length,
  };
  const walker = new Walker(tokens, end);
  walker.block('', walker.top);
  const { all, imports, groups } = walker;
  return {
    all,
    imports,
    groups,
    end,
    ...(walker.syntax && { syntax: walker.syntax }),
    ...(walker.edition && { edition: walker.edition }),
  };
}
