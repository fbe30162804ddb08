/**
 * One .proto as read and parsed: the protobufjs tree of its own declarations (nothing resolved) and where they are. Parse errors become
 * diagnostics with a column. Called by the loader; schemas are never evaluated.
 */
import protobuf from 'protobufjs';
import type { Diagnostic } from '../diagnostic.ts';
import { type Declaration, type Declarations, findDeclarations } from './declarations.ts';
import { type Token, tokenize } from './old-lexer.ts';

export interface ProtoSource {
  /** Relative to its include directory, with `/`: what other files import, and where the output goes. */
  readonly path: string;
  /** For messages to people. */
  readonly displayPath: string;
  readonly declarations: Declarations;
  readonly package: string;
  /** Declarations of this file only. */
  readonly root: protobuf.Root;
}

/** A diagnostic at a token. */
export function at(
  displayPath: string,
  token: Token,
  message: string,
  severity: Diagnostic['severity'] = 'error',
): Diagnostic {
  return { severity, file: displayPath, line: token.line, column: token.column, text: token.text, message };
}

export function parseSource(path: string, displayPath: string, text: string): ProtoSource | Diagnostic {
  const tokens = tokenize(text);
  const declarations = findDeclarations(tokens);
  const refused =
    refuseSyntax(displayPath, declarations, tokens) ?? refuseLenient(displayPath, declarations, tokens);
  if (refused !== undefined) return refused;
  const parsed = parse(text);
  if ('error' in parsed) return explain(displayPath, text, parsed.error, tokens, declarations);
  return { path, displayPath, declarations, package: parsed.package, root: parsed.root };
}

/** The parser's result, or its complaint. */
function parse(text: string): { root: protobuf.Root; package: string } | { error: string } {
  const root = new protobuf.Root();
  try {
    const parsed = protobuf.parse(text, root, { keepCase: true, alternateCommentMode: true });
    return { root, package: parsed.package ?? '' };
  } catch (error) {
    return { error: (error as Error).message };
  }
}

function refuseSyntax(
  displayPath: string,
  declarations: Declarations,
  tokens: readonly Token[],
): Diagnostic | undefined {
  const { syntax, edition } = declarations;
  if (edition !== undefined)
    return at(displayPath, edition, `edition ${edition.text} is not supported, only syntax = "proto3"`);
  if (syntax === undefined) {
    const first = tokens[0] ?? declarations.end;
    return at(
      displayPath,
      first,
      'no syntax = "proto3"; at the start, which makes this proto2: not supported',
    );
  }
  if (syntax.text.slice(1, -1) !== 'proto3')
    return at(displayPath, syntax, `syntax ${syntax.text} is not supported, only "proto3"`);
  return undefined;
}

/**
 * What the parser takes although proto3 does not: it drops whatever is named `__proto__` without a word, knows groups, and extends
 * anything.
 */
function refuseLenient(
  displayPath: string,
  declarations: Declarations,
  tokens: readonly Token[],
): Diagnostic | undefined {
  const token = tokens.find(({ text }) => /^[^"']/.test(text) && text.split('.').includes('__proto__'));
  if (token !== undefined) return at(displayPath, token, 'nothing can be named __proto__');
  const group = declarations.groups[0];
  if (group !== undefined) return at(displayPath, group, 'proto3 has no groups');
  const extended = declarations.all.find(
    ({ kind, name }) => kind === 'extend' && !/^\.?google\.protobuf\.\w+Options$/.test(name.text),
  );
  const what = 'proto3 extends nothing but the options of google.protobuf';
  return extended && at(displayPath, extended.name, `${what}, not ${extended.name.text}`);
}

/** Finds the place that an error of the parser is about: it names a line and a token, or a type and what is wrong in it. */
function explain(
  displayPath: string,
  source: string,
  message: string,
  tokens: readonly Token[],
  declarations: Declarations,
): Diagnostic {
  const twice = placeInType(message, declarations);
  if (twice !== undefined) return at(displayPath, twice.token, twice.message);
  const line = Number(/line (\d+)\)$/.exec(message)?.[1] ?? 0);
  const plain = message.replace(/ \((?:[^()]*, )?line \d+\)$/, '');
  const quoted = /'([^']*)'/.exec(plain)?.[1];
  if (quoted === 'null') {
    return at(displayPath, declarations.end, plain.replace(/illegal token 'null', /, 'the file ends, '));
  }
  const inLine = tokens.filter((token) => token.line === line);
  const candidates = inLine.filter((token) => token.text === quoted);
  // The token that the parser stumbled over is the first one up to which the file gives the same complaint.
  const stumbles = (token: Token) => {
    const parsed = parse(source.slice(0, token.offset + token.text.length));
    return 'error' in parsed && parsed.error === message;
  };
  const token = (candidates.length > 0 ? candidates : inLine).find(stumbles) ?? candidates[0] ?? inLine[0];
  return at(displayPath, token ?? declarations.end, plain);
}

const owners: Readonly<Record<string, string>> = { Type: 'message', Enum: 'enum', Service: 'service' };

/** `duplicate id 1 in Type A`, `id 3 is reserved in Type A`, `duplicate name 'x' in Enum E`, `name 'q' is reserved in Type A`. */
function placeInType(
  message: string,
  declarations: Declarations,
): { token: Token; message: string } | undefined {
  const pattern = /^(duplicate )?(id|name) (?:'([^']*)'|(-?\d+))(?: is reserved)? in (\w+) ?(\S*)$/;
  const match = pattern.exec(message);
  if (match === null) return undefined;
  const [, duplicate, , name, id, kind = '', owner = ''] = match;
  const fits = (declaration: Declaration) =>
    name !== undefined
      ? declaration.name.text === name
      : Number(declaration.number?.text) === Math.abs(Number(id));
  const groups = new Map<string, Declaration[]>();
  for (const declaration of declarations.all) {
    const parent = declaration.parent.split('.').at(-1);
    const inOwner = kind in owners ? parent === owner : declaration.parent === '';
    if (declaration.kind === 'extend' || !inOwner || !fits(declaration)) continue;
    groups.set(declaration.parent, [...(groups.get(declaration.parent) ?? []), declaration]);
  }
  const last = [...groups.values()].find((group) => group.length > (duplicate === undefined ? 0 : 1))?.at(-1);
  const token = name !== undefined ? last?.name : last?.number;
  if (token === undefined) return undefined;
  const what = name !== undefined ? `the name ${name}` : `the number ${id}`;
  const where = kind in owners ? `${owners[kind]} ${owner}` : 'this file';
  return { token, message: `${what} is ${duplicate === undefined ? 'reserved' : 'used twice'} in ${where}` };
}
