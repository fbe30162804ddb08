/**
 * The state that all parts of the parser share: the tokens, the results so far, and recovery after an error.
 * The parser makes it for each file.
 */
import type { FieldDescriptorProto } from '../descriptor/descriptor.rdma.ts';
import type { Token } from './lexer.ts';
import type { Location, OptionStatement, OptionValue, PendingOptions } from './parsed.ts';
import { SyntaxFault, type TokenStream } from './token-stream.ts';

export class ParseState {
  readonly stream: TokenStream;
  readonly locations = new Map<string, Location>();
  readonly pending: PendingOptions[] = [];
  readonly defaults = new Map<FieldDescriptorProto, OptionValue>();
  /** `proto2`, `proto3` or the name of the edition. */
  syntax = 'proto2';

  constructor(stream: TokenStream) {
    this.stream = stream;
  }

  get since2024(): boolean {
    return this.isEdition && this.syntax !== '2023';
  }

  get isEdition(): boolean {
    return this.syntax !== 'proto2' && this.syntax !== 'proto3';
  }

  /** Begins a statement at the next token; `end` sets `trailing`. */
  begin(): Token {
    return this.stream.peek();
  }

  /**
   * Records the position of an element: its name is `name`, it begins at `start`, and its head ends with the
   * last token.
   */
  element(path: string, start: Token, name: Token): void {
    const { leading } = start;
    const { trailing } = this.stream.last;
    this.locations.set(path, { token: start, leading, trailing });
    this.locations.set(`${path},1`, { token: name });
  }

  place(path: string, token: Token): void {
    this.locations.set(path, { token });
  }

  options(
    type: string,
    holder: PendingOptions['holder'],
    scope: string,
    statements: OptionStatement[],
  ): void {
    if (statements.length > 0) this.pending.push({ type, holder, scope, statements });
  }

  /**
   * Parses statements up to the closing brace. After an error in a statement it recovers and continues with
   * the next.
   */
  block(statement: () => void): void {
    while (!this.stream.accept('}')) {
      if (this.stream.peek().kind === 'end') this.stream.expected('}');
      this.statement(statement);
    }
  }

  statement(parse: () => void): void {
    if (this.stream.accept(';')) return;
    try {
      parse();
    } catch (error) {
      if (!(error instanceof SyntaxFault)) throw error;
      this.stream.recover();
    }
  }
}
