/**
 * Tests the quick info of an editor, by TypeScript's language service, in a program of a user.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const file = join(root, 'test/api/user.ts');
const program = `
import { createChannel, createClient, createServer, RpcError } from 'rdma-rpc';
import { DocsDefinition } from '../codec/gen/documented.rdma.ts';

const channel = createChannel('localhost:5000');
const docs = createClient(DocsDefinition, channel);
export const answer = await docs.read({}, { timeoutMs: 100 });
const server = createServer();
server.add(DocsDefinition, { read: (request) => ({ leading: request.leading }) });
void channel.close();
export const again = RpcError.from(0).processed;
`;

function service(): ts.LanguageService {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile) as { config: object };
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: [] }, ts.sys, root);
  const text = (path: string) =>
    path === file ? program : ts.sys.fileExists(path) ? readFileSync(path, 'utf8') : undefined;
  return ts.createLanguageService({
    getCompilationSettings: () => options,
    getScriptFileNames: () => [file],
    getScriptVersion: () => '1',
    getScriptSnapshot: (path) => {
      const found = text(path);
      return found === undefined ? undefined : ts.ScriptSnapshot.fromString(found);
    },
    getCurrentDirectory: () => root,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: (path) => path === file || ts.sys.fileExists(path),
    readFile: text,
    readDirectory: ts.sys.readDirectory,
    directoryExists: ts.sys.directoryExists,
    getDirectories: ts.sys.getDirectories,
    realpath: ts.sys.realpath ?? ((path) => path),
  });
}
const language = service();

/** Returns the quick info of the place where `text` begins. */
function hover(text: string): { shown: string; doc: string } {
  const at = program.indexOf(text);
  expect(at).not.toBe(-1);
  const info = language.getQuickInfoAtPosition(file, at);
  return {
    shown: ts.displayPartsToString(info?.displayParts),
    doc: ts.displayPartsToString(info?.documentation),
  };
}

test('the program compiles', () => {
  const wrong = language.getSemanticDiagnostics(file).map(({ messageText }) => messageText);
  expect(wrong).toEqual([]);
});

test('the declaration of a client has one line', () => {
  expect(hover('docs =').shown).toBe('const docs: Client<DocsDefinition>');
});

test('the types of channels and servers have their public names', () => {
  expect(hover('channel =').shown).toBe('const channel: Channel');
  expect(hover('server =').shown).toBe('const server: Server');
  expect(hover('answer =').shown).toBe('const answer: Old');
});

test('methods of a client, and of handlers, have the comments of the .proto', () => {
  expect(hover('read({}')).toEqual({
    shown: '(property) read: (request: DocumentedInit, options?: CallOptions) => Promise<Old>',
    doc: 'Of the method.',
  });
  expect(hover('read: (request)').doc).toBe('Of the method.');
});

test('members have their documentation', () => {
  expect(hover('close();').doc).toContain('Ends all connections.');
  expect(hover('timeoutMs: 100').doc).toContain('Time limit in ms');
  expect(hover('processed;')).toMatchObject({
    shown: '(property) RpcError.processed: Processed',
    doc: expect.stringContaining('repeating the call is always safe'),
  });
});
