/**
 * Files that npm packages contain as descriptors instead of text: protovalidate's rules. Projects with the
 * package can import them without having the .proto. Called by the loader for imports that are found nowhere
 * else.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { FileDescriptorProto } from '../descriptor/descriptor.rdma.ts';

interface Packaged {
  readonly package: string;
  /** A module of protobuf-es, and the const in it with the file. */
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

/** The used part of protobuf-es. */
interface ProtobufEs {
  toBinary(schema: unknown, message: unknown): Uint8Array;
}
interface ProtobufEsTypes {
  readonly FileDescriptorProtoSchema: unknown;
}

/** The package that contains the file, or undefined. */
export function packageWith(path: string): string | undefined {
  return Object.hasOwn(packaged, path) ? packaged[path]?.package : undefined;
}

/**
 * Returns the file from the package, which is resolved from these directories; undefined when it is not
 * installed.
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
