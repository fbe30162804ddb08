/** One file while its model is made: where things are, what names mean, and where complaints go. Used by build.ts and what it calls. */
import type { Diagnostic } from '../diagnostic.ts';
import type { Declaration } from '../source/declarations.ts';
import { at, type ProtoSource } from '../source/proto-source.ts';
import type { Documented, Enum, File, Message } from './model.ts';
import type { Symbols } from './symbols.ts';

export class Building {
  readonly file: File;
  readonly source: ProtoSource;
  readonly symbols: Symbols;
  private readonly diagnostics: Diagnostic[];
  private readonly places: ReadonlyMap<string, Declaration>;

  constructor(file: File, source: ProtoSource, symbols: Symbols, diagnostics: Diagnostic[]) {
    this.file = file;
    this.source = source;
    this.symbols = symbols;
    this.diagnostics = diagnostics;
    this.places = new Map(
      source.declarations.all.map((declaration) => [`${declaration.kind} ${declaration.path}`, declaration]),
    );
  }

  fullName(path: string): string {
    return this.file.package === '' ? path : `${this.file.package}.${path}`;
  }

  /**
   * The declaration at a path without the package. The parser takes some files whose braces do not match (`option x = {;`); what it then
   * finds in them is refused here.
   */
  place(kind: Declaration['kind'], path: string): Declaration {
    const place = this.places.get(`${kind} ${path}`);
    if (place !== undefined) return place;
    const { end } = this.source.declarations;
    this.report(end, `the braces of this file do not match: there is no ${kind} ${path}`);
    return { kind, path, parent: '', name: end };
  }

  report(token: Parameters<typeof at>[1], message: string, severity: Diagnostic['severity'] = 'error'): void {
    this.diagnostics.push(at(this.source.displayPath, token, message, severity));
  }

  /** The message or enum that `name` means, or undefined after a report. */
  resolve(name: string, scope: string, token: Parameters<typeof at>[1]): Message | Enum | undefined {
    const found = this.symbols.resolve(name, scope, this.file);
    if (found.kind === 'found') return found.type;
    if (found.kind === 'unknown') this.report(token, `unknown type ${name}`);
    else
      this.report(token, `type ${name} is declared in ${found.file.path}, which this file does not import`);
    return undefined;
  }
}

export function documented(
  comment: string | null | undefined,
  options: Readonly<Record<string, unknown>> | undefined,
): Documented {
  return { comment: comment ?? '', deprecated: options?.deprecated === true };
}
