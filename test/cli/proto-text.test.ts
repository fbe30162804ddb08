/** Declarations as text: what is printed for every declaration of the test schemas, read again by the generator, declares the same. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generate } from 'rdma-rpc/codegen';
import { afterAll, expect, test } from 'vitest';
import { enumText, messageText, serviceText } from '../../cli/server/proto-text.ts';
import { FileDescriptorProto } from '../../codegen/descriptor/descriptor.rdma.ts';
import type { FileDescriptor } from '../../runtime/codec/file-descriptor.ts';
import { file_everything_proto } from '../codec/gen/everything.rdma.ts';
import { file_well_known_proto } from '../codec/gen/well_known.rdma.ts';
import { root } from '../house/tree.ts';
import { file_echo_proto } from '../runtime/gen/echo.rdma.ts';

mkdirSync(join(root, 'gen'), { recursive: true });
const directory = mkdtempSync(join(root, 'gen', 'text-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Without what the text leaves out, sorted: the text has fields of oneofs last, and no messages for the entries of maps. */
function bare(value: unknown): unknown {
  const key = (each: unknown): string => {
    const { number = 0, name = '' } = each as { number?: number; name?: string };
    return `${String(number).padStart(12)} ${name}`;
  };
  if (Array.isArray(value)) {
    return typeof value[0] === 'object' ? value.map(bare).sort((a, b) => (key(a) < key(b) ? -1 : 1)) : value;
  }
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
  const left = ['options', 'jsonName', 'reservedRange', 'reservedName', 'sourceCodeInfo', 'extension'];
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, each]) => (left.includes(key) ? [] : [[key, bare(each)]])),
  );
}

test.each(
  [file_echo_proto, file_everything_proto, file_well_known_proto].map((file) => [file.name, file] as const),
)('%s', async (name, { bytes }) => {
  const file = FileDescriptorProto.decode(bytes);
  const text = [
    'syntax = "proto3";',
    `package ${file.package};`,
    ...file.dependency.map((path) => `import "${path}";`),
    ...file.messageType.map((message) => messageText(message, true)),
    ...file.enumType.map(enumText),
    ...file.service.map(serviceText),
  ].join('\n');
  writeFileSync(join(directory, name), text);
  await generate({ files: [join(directory, name)], include: [directory], out: directory });
  const module = (await import(join(directory, name.replace('.proto', '.rdma.ts')))) as Record<
    string,
    FileDescriptor
  >;
  const again = module[`file_${name.replace('.', '_')}`]!;
  expect(bare(FileDescriptorProto.decode(again.bytes))).toEqual(bare(file));
});
