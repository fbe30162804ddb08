/**
 * Finds files that npm packages contain as descriptors instead of text, such as protovalidate's rules.
 * Projects with such a package can import the files without having the .proto. The loader calls it for
 * imports that are not found elsewhere.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { FileDescriptorProto } from '../descriptor/descriptor.rdma.ts';

interface Packaged {
  readonly package: string;
  /** A module of protobuf-es, and the name of the const in it that has the file. */
  readonly module: string;
  readonly name: string;
}

const packaged: Readonly<Record<string, Packaged>> = {
  'buf/validate/validate.proto': {
    package: '@bufbuild/protovalidate',
    module: '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js',
    name: 'file_buf_validate_validate',
  },
};

/** The part of protobuf-es that is used here. */
interface ProtobufEs {
  toBinary(schema: unknown, message: unknown): Uint8Array;
}
interface ProtobufEsTypes {
  readonly FileDescriptorProtoSchema: unknown;
}

/** Returns the name of the package that contains the file, or undefined. */
export function packageWith(path: string): string | undefined {
  return Object.hasOwn(packaged, path) ? packaged[path]?.package : undefined;
}

/**
 * Returns the file from the package, which is resolved from these directories. Returns undefined when the
 * package is not installed.
 */
export function packagedFile(path: string, directories: readonly string[]): FileDescriptorProto | undefined {
  const found = Object.hasOwn(packaged, path) ? packaged[path] : undefined;
  if (found === undefined) return undefined;
  for (const directory of [...directories, process.cwd()]) {
    const require = createRequire(join(directory, 'index.js'));
    let at: string;
    try {
      at = require.resolve(found.module);
    } catch {
      continue;
    }
    const inside = createRequire(at);
    const { toBinary } = inside('@bufbuild/protobuf') as ProtobufEs;
    const { FileDescriptorProtoSchema } = inside('@bufbuild/protobuf/wkt') as ProtobufEsTypes;
    const module = inside(at) as { readonly [name: string]: { readonly proto: unknown } };
    const descriptor = FileDescriptorProto.decode(
      toBinary(FileDescriptorProtoSchema, module[found.name]?.proto),
    );
    if (descriptor.syntax === 'proto2') descriptor.syntax = undefined;
    return descriptor;
  }
  return undefined;
}
