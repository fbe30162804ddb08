/**
 * Prints as JSON the names that the compiler's language service offers at the position `|` of a program.
 * completion.test.ts runs it: `node offered.mjs FOLDER PROGRAM`, with the package in the folder's
 * node_modules.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const [work, program] = process.argv.slice(2);
const file = join(work, 'main.ts');
writeFileSync(file, program.replace('|', ''));
const { NodeNext } = ts.ModuleKind;
const service = ts.createLanguageService({
  ...ts.sys,
  useCaseSensitiveFileNames: () => true,
  getCompilationSettings: () => ({
    module: NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
  }),
  getScriptFileNames: () => [file],
  getScriptVersion: () => '1',
  getScriptSnapshot: (path) => {
    const text = ts.sys.readFile(path);
    return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
  },
  getCurrentDirectory: () => work,
  getDefaultLibFileName: ts.getDefaultLibFilePath,
});
const found = service.getCompletionsAtPosition(file, program.indexOf('|'), {});
console.log(JSON.stringify((found?.entries ?? []).map(({ name }) => name)));
