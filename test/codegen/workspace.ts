/** Makes a temporary directory with .proto files, for tests of the generator. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { onTestFinished } from 'vitest';
import { formatDiagnostic, GenerateError, generate } from '../../codegen/index.ts';

/** Creates the files, given by their paths. The directory is deleted when the test ends. */
export function workspace(files: Readonly<Record<string, string>>): string {
  const directory = mkdtempSync(join(tmpdir(), 'rdma-rpc-gen-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), text);
  }
  return directory;
}

export const proto3 = (body: string): string => `syntax = "proto3";\npackage t;\n${body}`;

/** Generates `a.proto` (and its imports) of a workspace in memory. */
export async function outputOf(files: Readonly<Record<string, string>>): Promise<string> {
  const directory = workspace(files);
  const { outputs } = await generate({ files: [join(directory, 'a.proto')], include: [directory] });
  return outputs.find((output) => output.path === 'a.rdma.ts')?.text ?? '';
}

/** Returns the generator's messages about a workspace: `file:line:column: severity: message | text`. */
export async function diagnosticsOf(files: Readonly<Record<string, string>>): Promise<string[]> {
  const directory = workspace(files);
  const format = (diagnostic: Parameters<typeof formatDiagnostic>[0]) => {
    const file = diagnostic.file.slice(
      diagnostic.file.indexOf(relative(tmpdir(), directory)) + relative(tmpdir(), directory).length + 1,
    );
    return `${formatDiagnostic({ ...diagnostic, file })} | ${diagnostic.text}`;
  };
  try {
    const paths = Object.keys(files).map((path) => join(directory, path));
    return (await generate({ files: paths, include: [directory] })).warnings.map(format);
  } catch (error) {
    if (error instanceof GenerateError) return error.diagnostics.map(format);
    throw error;
  }
}
