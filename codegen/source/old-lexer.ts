/**
 * Tokens of a .proto with their exact places. protobufjs does the parsing but keeps no columns, and no lines after it has parsed; this gives
 * them back. Never fails: what it does not understand is a one-character token, for the parser to refuse.
 */

export interface Token {
  readonly text: string;
  /** UTF-16 units from the start of the file. */
  readonly offset: number;
  /** From 1. */
  readonly line: number;
  /** From 1. */
  readonly column: number;
}

const pattern =
  /\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\/|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[A-Za-z_.][\w.]*|[\d][\w.+]*|[\s\S])/g;

export function tokenize(source: string): Token[] {
  const tokens: Token[] = [];
  let line = 1;
  let lineStart = 0;
  for (const match of source.matchAll(pattern)) {
    const text = match[0];
    if (match[1] !== undefined) {
      tokens.push({ text, offset: match.index, line, column: match.index - lineStart + 1 });
    }
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) {
      line++;
      lineStart = match.index + at + 1;
    }
  }
  return tokens;
}
