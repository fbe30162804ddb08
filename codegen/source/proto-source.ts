/**
 * One .proto as read and parsed: the protobufjs tree of its own declarations (nothing resolved) and where they are. Parse errors become
 * diagnostics with a column. Called by the loader; schemas are never evaluated.
 */
import protobuf from 'protobufjs';
import type { Diagnostic } from '../diagnostic.ts';
import { type Declaration, type Declarations, findDeclarations } from './declarations.ts';
import { type Token, tokenize } from './lexer.ts';

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
  const refused = refuseSyntax(displayPath, declarations, tokens) ?? refuseProto(displayPath, tokens);
  if (refused !== undefined) return refused;
  const root = new protobuf.Root();
  try {
    const parsed = protobuf.parse(text, root, { keepCase: true, alternateCommentMode: true });
    return { path, displayPath, declarations, package: parsed.package ?? '', root };
  } catch (error) {
    return explain(displayPath, (error as Error).message, tokens, declarations);
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

/** The parser drops what is named `__proto__` without a word. */
function refuseProto(displayPath: string, tokens: readonly Token[]): Diagnostic | undefined {
  const token = tokens.find(({ text }) => /^[^"']/.test(text) && text.split('.').includes('__proto__'));
  return token && at(displayPath, token, 'nothing can be named __proto__');
}

/** Finds the place that an error of the parser is about: it names a line and a token, or a type and what is wrong in it. */
function explain(
  displayPath: string,
  message: string,
  tokens: readonly Token[],
  declarations: Declarations,
): Diagnostic {
  const plain = message.replace(/ \((?:[^()]*, )?line \d+\)$/, '');
  const line = Number(/line (\d+)\)$/.exec(message)?.[1] ?? 0);
  const quoted = /'([^']*)'/.exec(plain)?.[1];
  const place = placeInType(plain, declarations);
  if (place !== undefined) return at(displayPath, place, plain);
  if (quoted === 'null')
    return at(displayPath, declarations.end, plain.replace(/illegal token 'null', /, 'the file ends, '));
  const candidates = tokens.filter((token) => token.line === line);
  const token =
    candidates.find((candidate) => candidate.text === quoted) ??
    candidates.find((c) => quoted && c.text.includes(quoted));
  return at(displayPath, token ?? candidates[0] ?? declarations.end, plain);
}

/** `duplicate id 1 in Type A`, `id 3 is reserved in Type A`, `duplicate name 'x' in Enum E`, `name 'q' is reserved in Type A`. */
function placeInType(plain: string, declarations: Declarations): Token | undefined {
  const match =
    /^(duplicate )?(id|name) (?:'([^']*)'|(-?\d+))(?: is reserved)? in (?:Type|Enum|Service|Namespace|Root) ?(\S*)$/.exec(
      plain,
    );
  if (match === null) return undefined;
  const [, duplicate, , name, id, owner = ''] = match;
  const fits = (declaration: Declaration) =>
    name !== undefined
      ? declaration.name.text === name
      : Number(declaration.number?.text) === Math.abs(Number(id));
  const groups = new Map<string, Declaration[]>();
  for (const declaration of declarations.all) {
    if (declaration.kind === 'extend' || !fits(declaration)) continue;
    const ownerName = declaration.parent.split('.').at(-1) ?? '';
    if (ownerName !== owner && declaration.parent !== '') continue;
    groups.set(declaration.parent, [...(groups.get(declaration.parent) ?? []), declaration]);
  }
  const wanted = [...groups.values()].find((group) => group.length > (duplicate === undefined ? 0 : 1));
  const last = wanted?.at(-1);
  return name !== undefined ? last?.name : last?.number;
}
