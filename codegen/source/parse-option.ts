/**
 * Parses options: `option a.(b.c).d = value;`, `[a = 1, b = 2]`, and values with braces (text format). The
 * other parts of the parser call it.
 */
import type { OptionStatement, OptionValue, TextField } from './parsed.ts';
import type { TokenStream } from './token-stream.ts';

/** Maximum nesting depth of braces. Deeper input could exhaust the stack. */
const depthMax = 100;

/** Parses `name = value`. */
function parseOption(stream: TokenStream): OptionStatement {
  const parts: { token: OptionStatement['parts'][number]['token']; name: string; extension: boolean }[] = [];
  do {
    if (stream.accept('(')) {
      const token = stream.dotted("an option's name");
      parts.push({ token, name: token.text, extension: true });
      stream.expect(')');
    } else {
      const token = stream.name("an option's name");
      parts.push({ token, name: token.text, extension: false });
    }
  } while (stream.accept('.'));
  stream.expect('=');
  return { parts, value: parseValue(stream, 0) };
}

/** Parses `[a = 1, b = 2]`, if present. */
export function parseInlineOptions(stream: TokenStream): OptionStatement[] {
  const statements: OptionStatement[] = [];
  if (!stream.accept('[')) return statements;
  do statements.push(parseOption(stream));
  while (stream.accept(','));
  stream.expect(']');
  return statements;
}

/** Parses `option name = value;`. */
export function parseOptionStatement(stream: TokenStream): OptionStatement {
  stream.expect('option');
  const statement = parseOption(stream);
  stream.expect(';');
  return statement;
}

function parseValue(stream: TokenStream, depth: number): OptionValue {
  const token = stream.peek();
  if (depth > depthMax) stream.fail(token, `values are nested more than ${depthMax} deep`);
  if (stream.is('{') || stream.is('<')) return parseMessage(stream, depth);
  if (token.kind === 'string') {
    const { bytes } = stream.string('a string');
    return { kind: 'string', token, bytes };
  }
  const sign = stream.accept('-') ? '-' : '';
  const { kind } = stream.peek();
  if (kind === 'name' && (sign === '' || /^(inf|infinity|nan)$/i.test(stream.peek().text))) {
    const text = sign + stream.next().text;
    return { kind: 'name', token: { ...token, text }, text };
  }
  if (kind !== 'int' && kind !== 'float') stream.expected('a value');
  const text = sign + stream.next().text;
  return { kind, token: { ...token, text }, text };
}

function parseMessage(stream: TokenStream, depth: number): OptionValue {
  const token = stream.next();
  const close = token.text === '{' ? '}' : '>';
  const fields: TextField[] = [];
  while (!stream.accept(close)) {
    fields.push(parseField(stream, depth));
    if (!stream.accept(',')) stream.accept(';');
  }
  return { kind: 'message', token, fields };
}

function parseField(stream: TokenStream, depth: number): TextField {
  const token = stream.peek();
  const bracketed = stream.accept('[');
  let name: string;
  if (bracketed) {
    name = stream.dotted('the name of an extension').text;
    // A name with `/` is a type URL in an Any: `[type.googleapis.com/a.B]`.
    while (stream.accept('/')) name += `/${stream.dotted('the name of a type').text}`;
    stream.expect(']');
  } else name = stream.name(`a field's name or the end of this value`).text;
  const colon = stream.accept(':');
  if (stream.is('[')) return { token, name, bracketed, value: parseList(stream, depth) };
  if (!colon && !stream.is('{') && !stream.is('<')) stream.expected(':');
  return { token, name, bracketed, value: parseValue(stream, depth + 1) };
}

function parseList(stream: TokenStream, depth: number): OptionValue {
  const token = stream.expect('[');
  const items: OptionValue[] = [];
  if (stream.accept(']')) return { kind: 'list', token, items };
  do items.push(parseValue(stream, depth + 1));
  while (stream.accept(','));
  stream.expect(']');
  return { kind: 'list', token, items };
}
