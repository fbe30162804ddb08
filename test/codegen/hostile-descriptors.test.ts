/**
 * Tests untrusted descriptors, as a plugin gets them. Names that would become code or invalid text cause an
 * error with the name, and no output is generated.
 */

import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { describe, expect, test } from 'vitest';
import { fromBinary } from '#protobuf';
import { registryOf } from '../../cli/server/schema/registry.ts';
import {
  CodeGeneratorRequest,
  CodeGeneratorResponse,
  FileDescriptorProto,
  type FileDescriptorProtoInit,
} from '../../codegen/descriptor/descriptor.rdma.ts';
import { runPlugin } from '../../codegen/plugin.ts';

const code = 'A: (globalThis.injected = true), B';

/** Returns the plugin's answer for one file. */
function answerTo(file: FileDescriptorProtoInit, target: 'ts' | 'js' = 'js') {
  const request = { protoFile: [file], fileToGenerate: [file.name ?? ''], parameter: `target=${target}` };
  return CodeGeneratorResponse.decode(runPlugin(CodeGeneratorRequest.encode(request)).response);
}

const int32 = (name: string, number = 1) => ({ name, number, type: 5, label: 1 });
const message = (more: object) => ({ name: 'M', ...more });
const fileWith = (more: object): FileDescriptorProtoInit => ({ name: 'x.proto', syntax: 'proto3', ...more });
const proto2 = (field: object) =>
  ({
    ...fileWith({ messageType: [message({ field: [field] })] }),
    syntax: undefined,
  }) as FileDescriptorProtoInit;
const base = { messageType: [message({ extensionRange: [{ start: 100, end: 200 }] })] };

const names: [string, FileDescriptorProtoInit][] = [
  ['package', fileWith({ package: code })],
  ['a part of the package', fileWith({ package: 'a..b' })],
  ['message', fileWith({ messageType: [{ name: code }] })],
  ['nested message', fileWith({ messageType: [message({ nestedType: [{ name: code }] })] })],
  ['field', fileWith({ messageType: [message({ field: [int32(code)] })] })],
  [
    'oneof',
    fileWith({
      messageType: [message({ field: [{ ...int32('a'), oneofIndex: 0 }], oneofDecl: [{ name: code }] })],
    }),
  ],
  ['enum', fileWith({ enumType: [{ name: code, value: [{ name: 'A', number: 0 }] }] })],
  ['value of an enum', fileWith({ enumType: [{ name: 'E', value: [{ name: code, number: 0 }] }] })],
  [
    'value of a nested enum',
    fileWith({ messageType: [message({ enumType: [{ name: 'E', value: [{ name: code, number: 0 }] }] })] }),
  ],
  ['extension', fileWith({ ...base, extension: [{ ...int32(code, 100), extendee: '.M' }] })],
  [
    'nested extension',
    fileWith({
      messageType: [{ ...base.messageType[0], extension: [{ ...int32(code, 100), extendee: '.M' }] }],
    }),
  ],
  ['service', fileWith({ service: [{ name: code }] })],
  [
    'method',
    fileWith({
      messageType: [message({})],
      service: [{ name: 'S', method: [{ name: code, inputType: '.M', outputType: '.M' }] }],
    }),
  ],
  ['empty name', fileWith({ messageType: [{ name: '' }] })],
  ['name with a $', fileWith({ messageType: [{ name: 'a$b' }] })],
  ['name with a letter beyond ASCII', fileWith({ messageType: [{ name: 'é' }] })],
];

const defaults: [string, FileDescriptorProtoInit][] = [
  ['int32', proto2({ ...int32('a'), defaultValue: '1, b: evil()' })],
  ['int64', proto2({ ...int32('a'), type: 3, defaultValue: '1n + evil()' })],
  ['int32 out of range', proto2({ ...int32('a'), defaultValue: '2147483648' })],
  ['uint32 below 0', proto2({ ...int32('a'), type: 13, defaultValue: '-1' })],
  ['bool', proto2({ ...int32('a'), type: 8, defaultValue: 'evil()' })],
  ['double', proto2({ ...int32('a'), type: 1, defaultValue: 'evil()' })],
  ['double in hexadecimal', proto2({ ...int32('a'), type: 1, defaultValue: '0x10' })],
  ['bytes', proto2({ ...int32('a'), type: 12, defaultValue: '\\q' })],
  ['message', proto2({ ...int32('a'), type: 11, typeName: '.M', defaultValue: '{}' })],
];

describe('an invalid name', () => {
  test.each(names)('%s', (_, file) => {
    const { error, file: outputs } = answerTo(file);
    expect(error).toMatch(/ is not (a name: names have letters, digits and _ only|the name of a package)$/);
    expect(outputs).toEqual([]);
  });

  test('is quoted in the error, and a long one shortened', () => {
    expect(answerTo(fileWith({ messageType: [{ name: code }] })).error).toBe(
      `x.proto: error: "${code}" is not a name: names have letters, digits and _ only`,
    );
    const { error = '' } = answerTo(fileWith({ messageType: [{ name: `${'x'.repeat(100_000)}!` }] }));
    expect(error.length).toBeLessThan(300);
  });

  test.each(names)("is also refused in a server's reflection answer: %s", (_, file) => {
    const descriptor = fromBinary(FileDescriptorProtoSchema, FileDescriptorProto.encode(file));
    expect(() => registryOf([descriptor])).toThrow(/^the descriptors cannot be used: x.proto: .* is not /);
  });
});

describe('an invalid default is refused', () => {
  test.each(defaults)('%s', (_, file) => {
    const { error, file: outputs } = answerTo(file);
    expect(error).toContain(' is not a default of ');
    expect(outputs).toEqual([]);
  });

  test.each(defaults)("is also refused in a server's reflection answer: %s", (_, file) => {
    const descriptor = fromBinary(FileDescriptorProtoSchema, FileDescriptorProto.encode(file));
    expect(() => registryOf([descriptor])).toThrow(/^the descriptors cannot be used: x.proto: .* is not /);
  });

  test('a default that its enum does not have is refused', () => {
    const file = proto2({ ...int32('a'), type: 14, typeName: '.E', defaultValue: 'B' });
    const { error } = answerTo({ ...file, enumType: [{ name: 'E', value: [{ name: 'A', number: 0 }] }] });
    expect(error).toContain('"B" is not a value of E');
  });
});

describe('content that would make the output wrong is refused', () => {
  const value = int32('value', 2);
  const entry = (field: object[]) =>
    message({
      field: [{ ...int32('m'), label: 3, type: 11, typeName: '.M.MEntry' }],
      nestedType: [{ name: 'MEntry', options: Uint8Array.of(0x38, 1), field }],
    });
  test.each<[string, FileDescriptorProtoInit, string]>([
    ['a path that leaves the output', fileWith({ name: '../x.proto' }), 'is not a path below'],
    ['an absolute path', fileWith({ name: '/x.proto' }), 'is not a path below'],
    ['a path with an empty part', fileWith({ name: 'a//x.proto' }), 'is not a path below'],
    ['no path', fileWith({ name: '' }), 'is not a path below'],
    ['an unknown syntax', fileWith({ syntax: 'proto4' }), 'syntax "proto4" is not supported'],
    ['field number 0', fileWith({ messageType: [message({ field: [int32('a', 0)] })] }), 'field number 0'],
    [
      'a field number that is used twice',
      fileWith({ messageType: [message({ field: [int32('a'), int32('b')] })] }),
      'the number 1 is used twice',
    ],
    [
      'an unknown type',
      fileWith({ messageType: [message({ field: [{ ...int32('a'), type: 99 }] })] }),
      'a has a type of number 99, which does not exist',
    ],
    [
      'an undeclared message type',
      fileWith({ messageType: [message({ field: [{ ...int32('a'), type: 11, typeName: '.N' }] })] }),
      'unknown type ".N"',
    ],
    [
      'an enum instead of a message',
      fileWith({
        messageType: [message({ field: [{ ...int32('a'), type: 11, typeName: '.E' }] })],
        enumType: [{ name: 'E', value: [{ name: 'A', number: 0 }] }],
      }),
      'unknown type ".E"',
    ],
    [
      'an undeclared request type',
      fileWith({ service: [{ name: 'S', method: [{ name: 'X', inputType: '.N', outputType: '.N' }] }] }),
      'unknown type ".N"',
    ],
    ['an enum without values', fileWith({ enumType: [{ name: 'E' }] }), 'enum E has no values'],
    [
      'a oneof that does not exist',
      fileWith({ messageType: [message({ field: [{ ...int32('a'), oneofIndex: 3 }] })] }),
      'a is in oneof number 3',
    ],
    [
      'the entry of a map without a value',
      fileWith({ messageType: [entry([int32('key')])] }),
      'MEntry is not the entry of a map',
    ],
    [
      'the entry of a map with a key of bytes',
      fileWith({ messageType: [entry([{ ...int32('key'), type: 12 }, value])] }),
      'MEntry is not the entry of a map',
    ],
    [
      'options that cannot be decoded',
      fileWith({ messageType: [message({ options: Uint8Array.of(0xff) })] }),
      'its options cannot be read',
    ],
  ])('%s', (_, file, error) => {
    const answer = answerTo(file);
    expect(answer.error).toContain(error);
    expect(answer.file).toEqual([]);
  });

  test('a requested file that is missing is an error', () => {
    const request = CodeGeneratorRequest.encode({ fileToGenerate: ['y.proto'] });
    expect(CodeGeneratorResponse.decode(runPlugin(request).response).error).toBe(
      'y.proto: error: the request asks for this file and does not have it',
    );
  });
});

test('arbitrary texts stay texts: comments, names in JSON, defaults', () => {
  const text = `*/ globalThis.injected = true; /* ' \\ \u2028 ${'$'}{x}`;
  const file: FileDescriptorProtoInit = {
    ...proto2({ ...int32('a'), type: 9, defaultValue: text, jsonName: text }),
    sourceCodeInfo: {
      location: [{ path: [4, 0], span: [0, 0, 1], leadingComments: text, trailingComments: text }],
    },
  };
  for (const target of ['ts', 'js'] as const) {
    const { error, file: outputs } = answerTo(file, target);
    expect(error).toBeUndefined();
    const [{ content = '' } = {}] = outputs;
    expect(content.replace(/\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\])*'/g, '')).not.toContain('injected');
  }
});
