/**
 * A top-level statement of a generated file, in the parts from which files are composed: one text for
 * TypeScript, and two for JavaScript with its declarations. All files in emit/ make statements, and file.ts
 * composes them.
 */
import type { FileScope } from './scope.ts';

export interface Statement {
  /** Text for the `.ts` or the `.js`. It is empty when the statement has no such text. */
  readonly code: string;
  /** Text for the `.d.ts` beside a `.js`. It is empty when the statement has no such text. */
  readonly declaration: string;
}

/** Makes a statement of code that is not exported. The caller uses the scope for types inside the code. */
export function internal(code: string): Statement {
  return { code, declaration: '' };
}

/** Makes a statement of an exported interface or type alias. */
export function exportedType(text: string, scope: FileScope): Statement {
  return scope.erases ? { code: '', declaration: text } : { code: text, declaration: '' };
}

export interface ExportedConst {
  /** The documentation, from docLines. */
  readonly doc: string;
  readonly name: string;
  readonly type: string;
  readonly value: string;
  /** In TypeScript, an object literal whose type is given by `as const`. */
  readonly literal?: true;
}

/** The documentation appears once, at the type, where editors look for it. */
export function exportedConst(
  { doc, name, type, value, literal }: ExportedConst,
  scope: FileScope,
): Statement {
  if (scope.erases)
    return {
      code: `export const ${name} = ${value};`,
      declaration: `${doc}export declare const ${name}: ${type};`,
    };
  const code = literal ? `${name} = ${value} as const;` : `${name}: ${type} = ${value};`;
  return { code: `${doc}export const ${code}`, declaration: '' };
}
