/**
 * The codecs that ours is compared with: protobufjs as static code (made here by its own command) and protobuf-es. One that is not installed is
 * reported as not run. Called by main.ts.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import protobuf from 'protobufjs';

export interface PeerCodec {
  encode(value: unknown): Uint8Array;
  decode(bytes: Uint8Array): unknown;
  /** Our message in the peer's form. */
  convert(bytes: Uint8Array): unknown;
}

export interface Peer {
  readonly name: string;
  /** Undefined with a reason when it cannot run here. */
  readonly codec: ((typeName: string) => PeerCodec) | undefined;
  readonly reason?: string;
}

interface StaticMessage {
  encode(value: unknown): { finish(): Uint8Array };
  decode(bytes: Uint8Array): unknown;
}

export async function protobufjsStatic(root: string, proto: string): Promise<Peer> {
  const name = 'protobufjs static';
  try {
    const require = createRequire(join(root, 'package.json'));
    const { main } = require('protobufjs-cli/pbjs') as {
      main(args: string[], done: (error: Error | null, text: string) => void): void;
    };
    const text = await new Promise<string>((resolve, reject) => {
      main(['-t', 'static-module', '-w', 'esm', '--no-comments', proto], (error, output) =>
        error ? reject(error) : resolve(output),
      );
    });
    const file = join(root, 'build', 'bench-codec', 'codec.mjs');
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    const module = (await import(pathToFileURL(file).href)) as { default: Record<string, unknown> };
    return {
      name,
      codec: (typeName) =>
        fromStatic(
          typeName
            .split('.')
            .reduce(
              (at, part) => (at as Record<string, unknown>)[part],
              module.default as unknown,
            ) as StaticMessage,
        ),
    };
  } catch (error) {
    return { name, codec: undefined, reason: (error as Error).message };
  }
}

function fromStatic(type: StaticMessage): PeerCodec {
  return {
    encode: (value) => type.encode(value).finish(),
    decode: (bytes) => type.decode(bytes),
    convert: (bytes) => type.decode(bytes),
  };
}

interface DescribedMessage {
  readonly name: string;
  readonly field: { typeName: string }[];
  readonly nestedType: DescribedMessage[];
}

/** protobufjs writes short type names, protobuf-es wants full ones. The benchmark's types are top-level, except those of maps. */
function qualify(message: DescribedMessage, scope: string): void {
  const nested = new Set(message.nestedType.map((type) => type.name));
  for (const field of message.field) {
    if (!field.typeName || field.typeName.startsWith('.')) continue;
    const name = field.typeName.split('.').at(-1) ?? '';
    field.typeName = nested.has(name) ? `${scope}.${message.name}.${name}` : `${scope}.${name}`;
  }
  for (const type of message.nestedType) qualify(type, `${scope}.${message.name}`);
}

interface ProtobufEs {
  createFileRegistry(files: unknown): { getMessage(name: string): unknown };
  fromBinary(type: unknown, bytes: Uint8Array): unknown;
  toBinary(type: unknown, message: unknown): Uint8Array;
}

export async function protobufEs(root: string, proto: string): Promise<Peer> {
  const name = 'protobuf-es';
  try {
    const require = createRequire(join(root, 'bench', 'peers', 'package.json'));
    const es = (await import(pathToFileURL(require.resolve('@bufbuild/protobuf')).href)) as ProtobufEs;
    const wkt = (await import(pathToFileURL(require.resolve('@bufbuild/protobuf/wkt')).href)) as {
      FileDescriptorSetSchema: unknown;
    };
    // Its own generator makes the same descriptors; taking them from protobufjs saves a protoc.
    const descriptor = createRequire(join(root, 'package.json'))('protobufjs/ext/descriptor') as {
      FileDescriptorSet: { encode(value: unknown): { finish(): Uint8Array } };
    };
    const parsed = protobuf.loadSync(proto).resolveAll() as protobuf.Root & {
      toDescriptor(edition: string): unknown;
    };
    const files = parsed.toDescriptor('proto3') as {
      file: { package: string; messageType: DescribedMessage[] }[];
    };
    for (const file of files.file)
      for (const message of file.messageType) qualify(message, `.${file.package}`);
    const set = descriptor.FileDescriptorSet.encode(files).finish();
    const registry = es.createFileRegistry(es.fromBinary(wkt.FileDescriptorSetSchema, set));
    return {
      name,
      codec: (typeName) => {
        const type = registry.getMessage(typeName);
        return {
          encode: (value) => es.toBinary(type, value),
          decode: (bytes) => es.fromBinary(type, bytes),
          convert: (bytes) => es.fromBinary(type, bytes),
        };
      },
    };
  } catch (error) {
    return { name, codec: undefined, reason: (error as Error).message.split('\n')[0] ?? 'unknown' };
  }
}
