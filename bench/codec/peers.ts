/**
 * The codecs that ours is compared with: protobufjs as static code (made here by its own command) and protobuf-es (from the same schema's
 * descriptor, which is all that its generated code holds). Called by speed.ts and bundle.ts.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createFileRegistry, type DescMessage, fromBinary, type Message, toBinary } from '@bufbuild/protobuf';
import { type FileDescriptorProto, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import protobuf from 'protobufjs';
import { packageRoot } from '../paths.ts';

export const protoFile = join(packageRoot, 'bench', 'codec', 'codec.proto');

export interface PeerCodec {
  readonly encode: (value: unknown) => Uint8Array;
  readonly decode: (bytes: Uint8Array) => unknown;
}

export interface Peer {
  readonly name: 'protobufjs static' | 'protobuf-es';
  codec(typeName: string): PeerCodec;
}

interface StaticMessage {
  encode(value: unknown): { finish(): Uint8Array };
  decode(bytes: Uint8Array): unknown;
}

/** The static module that protobufjs's command makes, as a file. */
export async function staticModule(): Promise<string> {
  const require = createRequire(join(packageRoot, 'package.json'));
  const { main } = require('protobufjs-cli/pbjs') as {
    main(args: string[], done: (error: Error | null, text: string) => void): void;
  };
  const text = await new Promise<string>((resolve, reject) => {
    main(['-t', 'static-module', '-w', 'esm', '--no-comments', protoFile], (error, output) =>
      error ? reject(error) : resolve(output),
    );
  });
  const file = join(packageRoot, 'build', 'bench-codec', 'codec.mjs');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

export async function protobufjsStatic(): Promise<Peer> {
  const module = (await import(pathToFileURL(await staticModule()).href)) as { default: object };
  return {
    name: 'protobufjs static',
    codec(typeName) {
      const found = typeName
        .split('.')
        .reduce((at: unknown, part) => (at as Record<string, unknown>)[part], module.default);
      const type = found as StaticMessage;
      return { encode: (value) => type.encode(value).finish(), decode: (bytes) => type.decode(bytes) };
    },
  };
}

interface DescribedMessage {
  readonly name: string;
  readonly field: { typeName: string }[];
  readonly nestedType: DescribedMessage[];
}

/** protobufjs writes short type names, protobuf-es wants full ones. The benchmark's types are top-level, except those of maps. */
function qualify(message: DescribedMessage, scope: string, file: string): void {
  const nested = new Set(message.nestedType.map((type) => type.name));
  for (const field of message.field) {
    if (!field.typeName || field.typeName.startsWith('.')) continue;
    const name = field.typeName.split('.').at(-1) ?? '';
    field.typeName = nested.has(name) ? `${scope}.${message.name}.${name}` : `${file}.${name}`;
  }
  for (const type of message.nestedType) qualify(type, `${scope}.${message.name}`, file);
}

/** The schema's descriptor, taken from protobufjs: protobuf-es's own plugin needs a protoc to make the same. */
export function describedFile(): FileDescriptorProto {
  const descriptor = createRequire(join(packageRoot, 'package.json'))('protobufjs/ext/descriptor') as {
    FileDescriptorSet: { encode(value: unknown): { finish(): Uint8Array } };
  };
  const parsed = protobuf.loadSync(protoFile).resolveAll() as protobuf.Root & {
    toDescriptor(edition: string): unknown;
  };
  const files = parsed.toDescriptor('proto3') as {
    file: { package: string; messageType: DescribedMessage[] }[];
  };
  for (const file of files.file)
    for (const message of file.messageType) qualify(message, `.${file.package}`, `.${file.package}`);
  const set = fromBinary(FileDescriptorSetSchema, descriptor.FileDescriptorSet.encode(files).finish());
  const [file] = set.file;
  if (file === undefined) throw new Error(`${protoFile} has no descriptor`);
  return file;
}

export function protobufEs(): Peer {
  const registry = createFileRegistry(describedFile(), () => undefined);
  return {
    name: 'protobuf-es',
    codec(typeName) {
      const type = registry.getMessage(typeName) as DescMessage;
      return {
        encode: (value) => toBinary(type, value as Message),
        decode: (bytes) => fromBinary(type, bytes),
      };
    },
  };
}
