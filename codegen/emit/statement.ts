/**
 * A top-level statement of a generated file, in the parts that files are put together from: one text for
 * TypeScript, two for JavaScript with its declarations. Made by everything in emit/, put together by file.ts.
 */
import type { Scope } from './scope.ts';

export interface Statement {
  /** In the `.ts` or the `.js`; empty: not there. */
  readonly code: string;
  /** In the `.d.ts` beside a `.js`; empty: not there. */
  readonly declaration: string;
}

/** What runs and nobody sees. Types inside are the scope's. */
export function internal(code: string): Statement {
  return { code, declaration: '' };
}

/** An exported interface or type alias. */
export function exportedType(text: string, scope: Scope): Statement {
  return scope.erases ? { code: '', declaration: text } : { code: text, declaration: '' };
}

export interface ExportedConst {
  /** As docLines gives it. */
  readonly doc: string;
  readonly name: string;
  readonly type: string;
  readonly value: string;
  /** A literal of which `as const` says the type, in TypeScript. */
  readonly literal?: true;
}

/** Its documentation stands once: where editors look, which is at the type. */
export function exportedConst({ doc, name, type, value, literal }: ExportedConst, scope: Scope): Statement {
  if (scope.erases)
    return {
      code: `export const ${name} = ${value};`,
      declaration: `${doc}export declare const ${name}: ${type};`,
    };
  const code = literal ? `${name} = ${value} as const;` : `${name}: ${type} = ${value};`;
  return { code: `${doc}export const ${code}`, declaration: '' };
}
