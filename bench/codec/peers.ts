/**
 * The codecs with which ours is compared. protobufjs is used as static code, generated here by its own
 * command. protobuf-es works from the same schema's descriptor, which is all that its generated code
 * contains. candidates.ts, speed.ts and bundle.ts call these functions.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  create,
  createFileRegistry,
  type DescMessage,
  fromBinary,
  type Message,
  toBinary,
} from '@bufbuild/protobuf';
import { type FileDescriptorProto, FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { packageRoot } from '../paths.ts';
import { file_codec_proto } from './gen/codec.rdma.ts';

const protoFile = join(packageRoot, 'bench', 'codec', 'codec.proto');

export interface PeerCodec {
  /** Converts the plain object that our codec encodes into the form that the peer encodes. */
  readonly create: (init: object) => unknown;
  readonly encode: (value: unknown) => Uint8Array;
  readonly decode: (bytes: Uint8Array) => unknown;
}

export interface Peer {
  readonly name: 'protobufjs static' | 'protobuf-es';
  codec(typeName: string): PeerCodec;
}

interface StaticMessage {
  fromObject(init: object): unknown;
  encode(value: unknown): { finish(): Uint8Array };
  decode(bytes: Uint8Array): unknown;
}

const staticFile = join(packageRoot, 'build', 'bench-codec', 'codec.mjs');

/** Runs protobufjs's command to generate the static module, and returns its file. */
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
  mkdirSync(dirname(staticFile), { recursive: true });
  writeFileSync(staticFile, text);
  return staticFile;
}

/** Returns protobufjs as a peer. Its static module must already exist. */
export async function protobufjsStatic(): Promise<Peer> {
  const module = (await import(pathToFileURL(staticFile).href)) as { default: object };
  return {
    name: 'protobufjs static',
    codec(typeName) {
      const found = typeName
        .split('.')
        .reduce((at: unknown, part) => (at as Record<string, unknown>)[part], module.default);
      const type = found as StaticMessage;
      return {
        create: (init) => type.fromObject(init),
        encode: (value) => type.encode(value).finish(),
        decode: (bytes) => type.decode(bytes),
      };
    },
  };
}

/**
 * Returns the schema's descriptor, which our generated code contains. protobuf-es's own plugin would need
 * protoc to produce the same descriptor.
 */
export function describedFile(): FileDescriptorProto {
  return fromBinary(FileDescriptorProtoSchema, file_codec_proto.bytes);
}

export function protobufEs(): Peer {
  const registry = createFileRegistry(describedFile(), () => undefined);
  return {
    name: 'protobuf-es',
    codec(typeName) {
      const type = registry.getMessage(typeName) as DescMessage;
      return {
        create: (init) => create(type, init as Record<string, unknown>),
        encode: (value) => toBinary(type, value as Message),
        decode: (bytes) => fromBinary(type, bytes),
      };
    },
  };
}
