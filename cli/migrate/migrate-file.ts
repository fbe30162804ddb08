/**
 * Migrates one file: applies the rules of the libraries that it imports. migrate.ts uses this file.
 */
import type { SourceFile } from 'ts-morph';
import { migrateConnect } from './connect.ts';
import { type Edit, isSame, isWithin } from './edits.ts';
import { FileChange, type Group } from './file-change.ts';
import type { Generated } from './generated.ts';
import { GeneratedNames } from './generated-imports.ts';
import { migrateGrpc } from './grpc-js.ts';
import { generatorPage, type Left } from './left.ts';
import { companions, isConnect, isGrpc, isLibrary, isNice } from './libraries.ts';
import { migrateNice } from './nice-grpc.ts';
import { migrateProtobufEs } from './protobuf-es.ts';
import { migrateTsProto } from './ts-proto.ts';

/**
 * All groups. If one of them cannot be converted, no group is converted. Status codes are in no group,
 * because their numbers are equal.
 */
const groups: readonly Group[] = ['client', 'server', 'errors', 'metadata', 'messages'];

export interface MigratedFile {
  readonly path: string;
  readonly change: FileChange;
  readonly left: readonly Left[];
}

/** Returns the migrated file, or undefined when it imports none of the libraries and no generated code. */
export function migrateFile(source: SourceFile, generated: Generated): MigratedFile | undefined {
  let blocked: ReadonlySet<Group> = new Set();
  let first: readonly Edit[] = [];
  const left: Left[] = [];
  for (;;) {
    const change = new FileChange(source, blocked, first);
    const names = new GeneratedNames(change, generated);
    const { references, imports } = change;
    const requires = requiredModules(source).filter((module) => isLibrary({ module }));
    if (!imports.some(isLibrary) && names.references.length === 0 && requires.length === 0) return undefined;
    for (const module of requires)
      change.block('client', source, `require('${module}'): this package has ES modules only`, generatorPage);
    companionsOf(change);
    if (references.some(isGrpc) || imports.some(isGrpc)) migrateGrpc(change, names);
    if (references.some(isNice)) migrateNice(change);
    if (references.some(isConnect)) migrateConnect(change);
    migrateProtobufEs(change, names);
    migrateTsProto(change, names);
    names.convertRest();
    for (const each of change.left)
      if (!left.some(({ line, text }) => line === each.line && text === each.text)) left.push(each);
    if (change.newlyBlocked.size > 0 && blocked.size < groups.length) {
      blocked = new Set(groups);
      first = [];
      continue;
    }
    const late = newEdits(change.edits.late, first);
    if (late.length === 0) {
      change.finishImports((each) => isLibrary(each) || names.isGenerated(each));
      return { path: source.getFilePath(), change, left: left.sort((a, b) => a.line - b.line) };
    }
    first = [...first, ...late];
  }
}

/**
 * Returns the first edit of each range for which `known` has no edit. If one such range contains another, the
 * outer range is left to a later attempt, because its text was rendered without the edit of the inner range.
 */
function newEdits(edits: readonly Edit[], known: readonly Edit[]): Edit[] {
  const found: Edit[] = [];
  for (const edit of edits) if (![...known, ...found].some((each) => isSame(each, edit))) found.push(edit);
  return found.filter((edit) => !found.some((each) => isWithin(each, edit)));
}

function companionsOf(change: FileChange): void {
  for (const { module, declaration } of change.imports)
    for (const [name, text, page] of companions)
      if (name.test(module)) change.leave(declaration, `${module} ${text}`, page);
}

/** Returns the modules that the file loads with `require`. */
function requiredModules(source: SourceFile): string[] {
  return [...source.getFullText().matchAll(/\brequire\(\s*['"]([^'"]+)['"]\s*\)/g)].map(
    ([, module]) => module!,
  );
}
