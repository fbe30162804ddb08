/**
 * Describes the public surface as text: the exports of each entry point of the package, as the compiled
 * declarations have them, without comments. The test beside this file writes the report into public-api.txt,
 * so that each change of the public surface is a change of that file.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ExportedDeclarations, Node, Project, ts } from 'ts-morph';

export const root = fileURLToPath(new URL('../..', import.meta.url));
const printer = ts.createPrinter({ removeComments: true });

/**
 * Returns the name that a declaration has in its own file; an entry point may export it under another name.
 */
function nameOf(declaration: ExportedDeclarations): string | undefined {
  return Node.hasName(declaration) ? declaration.getName() : undefined;
}

/**
 * Returns the text of a declaration. Generated declarations follow rules of their own, so only their names
 * are listed.
 */
function textOf(name: string, declaration: ExportedDeclarations): string {
  const file = declaration.getSourceFile();
  if (file.getBaseName().endsWith('.rdma.d.ts')) return `${name} (generated)`;
  const node = Node.isVariableDeclaration(declaration)
    ? declaration.getVariableStatementOrThrow()
    : declaration;
  if (Node.isSourceFile(node)) return `export * as ${name}`;
  return printer
    .printNode(ts.EmitHint.Unspecified, node.compilerNode, file.compilerNode)
    .replace(/^(export )?(declare )?/, '')
    .replaceAll(/^ *(?:#private|private .*);\n/gm, '')
    .replaceAll(/^(?: {4})+/gm, (indent) => ' '.repeat(indent.length / 2))
    .replace(/^/, nameOf(declaration) === name ? '' : `as ${name}: `);
}

interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly types: string }>>;
}

/** Returns the entry points, and the members of their exports. This needs the compiled package. */
export function publicApi(): Map<string, Map<string, readonly ExportedDeclarations[]>> {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;
  const project = new Project({
    compilerOptions: { module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2023, types: ['node'] },
    skipAddingFilesFromTsConfig: true,
  });
  return new Map(
    Object.entries(manifest.exports).flatMap(([entry, at]) => {
      if (typeof at === 'string') return [];
      const file = project.addSourceFileAtPath(join(root, at.types));
      return [[entry, new Map([...file.getExportedDeclarations()].sort(([a], [b]) => (a < b ? -1 : 1)))]];
    }),
  );
}

export function report(api: ReturnType<typeof publicApi>): string {
  const lines = ['What the entry points of rdma-rpc export. Made by test/api; compared there.'];
  for (const [entry, exported] of api) {
    lines.push('', `==== ${entry.replace('.', 'rdma-rpc')}`);
    for (const [name, declarations] of exported)
      lines.push('', ...declarations.map((declaration) => textOf(name, declaration)));
  }
  return `${lines.join('\n')}\n`;
}
