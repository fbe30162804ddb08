/**
 * A top-level statement of a generated file, in the parts that files are composed of: one text for
 * TypeScript, two for JavaScript with its declarations. Made by everything in emit/, composed by file.ts.
 */
import type { FileScope } from './scope.ts';

export interface Statement {
  /** Text for the `.ts` or the `.js`; empty for none. */
  readonly code: string;
  /** Text for the `.d.ts` beside a `.js`; empty for none. */
  readonly declaration: string;
}

/** Code that is not exported. The caller handles types inside it through the scope. */
export function internal(code: string): Statement {
  return { code, declaration: '' };
}

/** An exported interface or type alias. */
export function exportedType(text: string, scope: FileScope): Statement {
  return scope.erases ? { code: '', declaration: text } : { code: text, declaration: '' };
}

export interface ExportedConst {
  /** From docLines. */
  readonly doc: string;
  readonly name: string;
  readonly type: string;
  readonly value: string;
  /** An object literal whose type is given by `as const`, in TypeScript. */
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
