/**
 * The entry point for protoc and buf: turns a CodeGeneratorRequest into a CodeGeneratorResponse. Beginning
 * with linked descriptors it works like generate(), so the output is the same. cli/protoc-gen.ts calls it. It
 * does not read or write streams itself.
 */
import {
  CodeGeneratorRequest,
  CodeGeneratorResponse,
  type FileDescriptorProto,
} from './descriptor/descriptor.rdma.ts';
import { editions } from './descriptor/types.ts';
import { type Diagnostic, formatDiagnostic, GenerateError, Reporter } from './diagnostic.ts';
import { emitSchema } from './emit/schema.ts';
import { conflict, type ImportExtension } from './emit/target.ts';
import { checkDescriptor } from './link/check-descriptor.ts';
import { addExtensions } from './link/linked.ts';
import { Schema, type SchemaFile } from './link/schema.ts';
import { loadFiles } from './load.ts';
import type { Int64 } from './model/model.ts';
import { sortOptions } from './options/sort.ts';
import { bundledDirectory, descriptorPath } from './source/files.ts';
import type { Location } from './source/parsed.ts';

/** The bits of CodeGeneratorResponse.Feature for optional fields of proto3 and for editions. */
const supportedFeatures = 1n | 2n;

export interface PluginResult {
  /** The bytes for standard output, which protoc reads. */
  readonly response: Uint8Array;
  /** The warnings for standard error. */
  readonly warnings: readonly Diagnostic[];
}

type Options = {
  target?: 'ts' | 'js';
  importExtension?: ImportExtension;
  unknownFields?: 'keep' | 'drop';
  int64?: Int64;
  enums?: 'open' | 'closed';
};

const parameters =
  'target=ts|js, import_extension=ts|js|none, unknown_fields=keep|drop, int64=bigint|string|number and enums=open|closed';

/**
 * Parses a parameter such as `target=js,unknown_fields=keep`. Returns an error text for an invalid parameter.
 */
function parseParameter(parameter: string): Options | string {
  const options: Options = {};
  for (const part of parameter.split(',').filter((each) => each !== '')) {
    const [name = '', value = ''] = part.split('=');
    if (name === 'target' && (value === 'ts' || value === 'js')) options.target = value;
    else if (name === 'import_extension' && (value === 'ts' || value === 'js' || value === 'none'))
      options.importExtension = value;
    else if (name === 'unknown_fields' && (value === 'keep' || value === 'drop'))
      options.unknownFields = value;
    else if (name === 'int64' && (value === 'bigint' || value === 'string' || value === 'number'))
      options.int64 = value;
    else if (name === 'enums' && (value === 'open' || value === 'closed')) options.enums = value;
    else return `${part}: unknown parameter or value; the parameters are ${parameters}`;
  }
  return conflict(options) || options;
}

/** Returns positions in the form that our parser records. Lines and columns count from 0 in descriptors. */
function locationsOf({ sourceCodeInfo }: FileDescriptorProto): Map<string, Location> {
  const locations = new Map<string, Location>();
  for (const { path, span, leadingComments, trailingComments } of sourceCodeInfo?.location ?? []) {
    const token = { text: '', line: (span[0] ?? 0) + 1, column: (span[1] ?? 0) + 1 };
    locations.set(path.join(','), { token, leading: leadingComments, trailing: trailingComments });
  }
  return locations;
}

const nowhere = { line: 0, column: 0, text: '' };

/** Calls `attempt` and reports its error. Options are bytes in a descriptor and may be malformed. */
function orReport(file: SchemaFile, attempt: () => void): void {
  try {
    attempt();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    file.reporter.report(nowhere, `its options cannot be read: ${error.message}`);
  }
}

/** Reports an unsupported edition. A compiler observes maximum_edition, but other programs may not. */
function checkEdition({ syntax, edition }: FileDescriptorProto, reporter: Reporter): void {
  const known = Object.entries(editions).filter(([name]) => !name.startsWith('proto'));
  if (syntax !== 'editions' || known.some(([, number]) => number === edition)) return;
  const names = known.map(([name]) => name).join(', ');
  reporter.report(nowhere, `edition number ${edition ?? 0} is not supported, only ${names}`);
}

function schemaOf(request: CodeGeneratorRequest, diagnostics: Diagnostic[]): Schema {
  const schema = new Schema();
  const files: SchemaFile[] = [];
  // Options are declared in descriptor.proto, which protoc passes only if it is imported.
  if (!request.protoFile.some(({ name }) => name === descriptorPath)) {
    const bundled = loadFiles([`${bundledDirectory()}/${descriptorPath}`], [bundledDirectory()], false);
    files.push(...bundled.schema.files.values());
  }
  for (const descriptor of request.protoFile) {
    if (descriptor.syntax === 'proto2') descriptor.syntax = undefined;
    const path = descriptor.name ?? '';
    const reporter = new Reporter(path, '', diagnostics);
    checkEdition(descriptor, reporter);
    files.push({ path, descriptor, locations: locationsOf(descriptor), reporter });
  }
  for (const file of files) schema.add(file);
  for (const file of files) addExtensions(schema, file);
  for (const path of request.fileToGenerate)
    if (!schema.files.has(path))
      new Reporter(path, '', diagnostics).report(
        nowhere,
        'the request asks for this file and does not have it',
      );
  for (const file of files)
    orReport(file, () => {
      checkDescriptor(schema, file);
      sortOptions(schema, file.descriptor);
    });
  // The model cannot handle files with reported errors.
  if (diagnostics.some(({ severity }) => severity === 'error')) throw new GenerateError(diagnostics);
  return schema;
}

/** Runs the plug-in. Never throws for errors in the input, because the response contains them. */
export function runPlugin(bytes: Uint8Array): PluginResult {
  const diagnostics: Diagnostic[] = [];
  const respond = (fields: { error?: string; file?: { name: string; content: string }[] }): PluginResult => ({
    response: CodeGeneratorResponse.encode({
      supportedFeatures,
      minimumEdition: editions.proto2,
      maximumEdition: editions['2026'],
      ...fields,
    }),
    warnings: diagnostics.filter(({ severity }) => severity === 'warning'),
  });
  try {
    const request = CodeGeneratorRequest.decode(bytes);
    const options = parseParameter(request.parameter ?? '');
    if (typeof options === 'string') return respond({ error: options });
    const schema = schemaOf(request, diagnostics);
    const outputs = emitSchema(schema, new Set(request.fileToGenerate), diagnostics, {
      ...options,
      runtimeApart: true,
    });
    return respond({ file: outputs.map(({ path, text }) => ({ name: path, content: text })) });
  } catch (error) {
    if (!(error instanceof GenerateError)) throw error;
    const errors = error.diagnostics.filter(({ severity }) => severity === 'error');
    return respond({ error: errors.map(formatDiagnostic).join('\n') });
  }
}
