/**
 * The declarations from `--proto` and `--protoset`. `--proto` names .proto files, which the parser of
 * `rdma-rpc gen` reads. `--protoset` names descriptor sets, as protoc and buf write them.
 */
import { resolve } from 'node:path';
import {
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  type FileRegistry,
  fromBinary,
} from '#protobuf';
import { FileDescriptorProto as OwnDescriptor } from '../../../codegen/descriptor/descriptor.rdma.ts';
import type { Diagnostic } from '../../../codegen/diagnostic.ts';
import type { SchemaFile } from '../../../codegen/link/schema.ts';
import { loadFiles } from '../../../codegen/load.ts';
import { readInput } from '../../../codegen/source/files.ts';
import { lookUp, registryOf } from './registry.ts';
import type { Schema, SchemaFlags } from './schema.ts';

/** Returns the file's descriptor, including its comments, which the parser keeps separately. */
function descriptorOf({ descriptor, locations }: SchemaFile): FileDescriptorProto {
  const location = [...locations].flatMap(([path, { leading, trailing }]) =>
    leading === undefined && trailing === undefined
      ? []
      : { path: path.split(',').map(Number), leadingComments: leading, trailingComments: trailing },
  );
  return fromBinary(
    FileDescriptorProtoSchema,
    OwnDescriptor.encode({ ...descriptor, sourceCodeInfo: { location } }),
  );
}

/** Formats a diagnostic without its severity, because the command prints `error:` itself. */
const located = ({ file, line, column, message }: Diagnostic): string =>
  line === 0 ? `${file}: ${message}` : `${file}:${line}:${column}: ${message}`;

function parsed(files: readonly string[], include: readonly string[]): FileDescriptorProto[] {
  const { schema, diagnostics } = loadFiles(files, include, false);
  const errors = diagnostics.filter(({ severity }) => severity === 'error');
  if (errors.length > 0) throw new Error(errors.map(located).join('\n'));
  return [...schema.files.values()].map(descriptorOf);
}

function descriptorSet(path: string): FileDescriptorProto[] {
  let bytes: Uint8Array;
  try {
    bytes = readInput(path);
  } catch (error) {
    throw new Error(`${path} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
  try {
    const { file } = fromBinary(FileDescriptorSetSchema, bytes);
    if (file.length > 0 && file.every(({ name }) => name !== '')) return file;
  } catch {
    // The text omits the cause. For bytes that are not a descriptor set, its details would not help the user.
  }
  throw new Error(
    `${path} is not a descriptor set: protoc --include_imports --descriptor_set_out=FILE makes one`,
  );
}

/** Throws an Error that names the file and says what is wrong. */
export function fileRegistry({ proto, include, protoset }: SchemaFlags): FileRegistry {
  const files = new Map<string, FileDescriptorProto>();
  for (const path of protoset) for (const file of descriptorSet(path)) files.set(file.name, file);
  const named = proto.map((each) => resolve(each));
  if (named.length > 0) for (const file of parsed(named, include)) files.set(file.name, file);
  return registryOf([...files.values()]);
}

export function fileSchema(flags: SchemaFlags): Schema {
  const registry = fileRegistry(flags);
  const services = [...registry].flatMap((each) => (each.kind === 'service' ? each.typeName : [])).sort();
  return {
    owner: flags.proto.length > 0 ? 'the .proto files' : 'the descriptor set',
    services: async () => services,
    declaring: async (symbol) => (lookUp(registry, symbol) === undefined ? undefined : registry),
  };
}
