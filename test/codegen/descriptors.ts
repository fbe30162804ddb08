/**
 * Contains helpers that compare descriptors: the descriptors that protoc makes of .proto files, and a form in
 * which two descriptors of the same file are equal.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileDescriptorProto } from '../../codegen/descriptor/descriptor.rdma.ts';
import type { Schema } from '../../codegen/link/schema.ts';
import { decodeOptions } from '../../codegen/options/tree.ts';

/**
 * Returns protoc's descriptors of the files and of all their imports, by import path. Throws an error with
 * protoc's output.
 */
export function protocDescriptors(
  include: readonly string[],
  paths: readonly string[],
): Map<string, FileDescriptorProto> {
  const directory = mkdtempSync(join(tmpdir(), 'rdma-rpc-protoc-'));
  try {
    const out = join(directory, 'set');
    const flags = [...include.map((each) => `-I${each}`), '--include_imports', `--descriptor_set_out=${out}`];
    execFileSync('protoc', [...flags, ...paths], { stdio: ['ignore', 'ignore', 'pipe'], maxBuffer: 2 ** 26 });
    return new Map(fileSet(readFileSync(out)).map((file) => [file.name ?? '', file]));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** A FileDescriptorSet is field 1, repeated. */
function fileSet(bytes: Uint8Array): FileDescriptorProto[] {
  const files: FileDescriptorProto[] = [];
  for (let at = 0; at < bytes.length; ) {
    let length = 0;
    let shift = 0;
    for (at++; ; shift += 7) {
      const byte = bytes[at++] as number;
      length |= (byte & 127) << shift;
      if (byte < 128) break;
    }
    files.push(FileDescriptorProto.decode(bytes.subarray(at, at + length)));
    at += length;
  }
  return files;
}

/** Options are messages whose fields may come in any order. */
const optionTypes: Readonly<Record<string, string>> = {
  messageType: 'MessageOptions',
  nestedType: 'MessageOptions',
  field: 'FieldOptions',
  extension: 'FieldOptions',
  enumType: 'EnumOptions',
  value: 'EnumValueOptions',
  oneofDecl: 'OneofOptions',
  service: 'ServiceOptions',
  method: 'MethodOptions',
  extensionRange: 'ExtensionRangeOptions',
};

/** Returns a plain copy without absent fields, with options by number. */
export function comparable(schema: Schema, value: unknown, type = 'FileOptions'): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
  const entries = Object.entries(value).flatMap(([key, each]: [string, unknown]): [string, unknown][] => {
    if (each === undefined || key === 'sourceCodeInfo') return [];
    if (key === 'options') return [[key, decodeOptions(schema, type, each as Uint8Array)?.encode()]];
    if (!Array.isArray(each)) return [[key, each]];
    return [[key, each.map((item) => comparable(schema, item, optionTypes[key] ?? ''))]];
  });
  return Object.fromEntries(entries);
}
