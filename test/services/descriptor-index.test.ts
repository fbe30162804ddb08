/**
 * Tests the names that reflection finds: everything that a file can declare, in every place, and extensions
 * by number.
 */
import { describe, expect, test } from 'vitest';
import {
  FileDescriptorProto,
  type FileDescriptorProtoInit,
} from '../../codegen/descriptor/descriptor.rdma.ts';
import type { FileDescriptor } from '../../runtime/codec/file-descriptor.ts';
import { DescriptorIndex } from '../../runtime/services/descriptor-index.ts';

function file(proto: FileDescriptorProtoInit, dependencies: FileDescriptor[] = []): FileDescriptor {
  return { name: proto.name!, dependencies, bytes: FileDescriptorProto.encode(proto) };
}

const base = file({
  name: 'base.proto',
  package: 'base',
  messageType: [
    { name: 'Open', extensionRange: [{ start: 100, end: 201 }], field: [{ name: 'a', number: 1 }] },
  ],
});
const main = file(
  {
    name: 'main.proto',
    package: 'a.b',
    dependency: ['base.proto'],
    messageType: [
      {
        name: 'Outer',
        field: [
          { name: 'one', number: 1, oneofIndex: 0 },
          { name: 'two', number: 2, oneofIndex: 0 },
        ],
        oneofDecl: [{ name: 'choice' }],
        nestedType: [
          {
            name: 'Inner',
            field: [{ name: 'deep', number: 1 }],
            enumType: [{ name: 'Kind', value: [{ name: 'NONE' }, { name: 'SOME', number: 1 }] }],
          },
        ],
        extension: [{ name: 'nested_ext', number: 101, extendee: '.base.Open' }],
      },
    ],
    enumType: [{ name: 'Color', value: [{ name: 'RED' }] }],
    extension: [{ name: 'ext', number: 100, extendee: '.base.Open' }],
    service: [
      { name: 'Svc', method: [{ name: 'Do', inputType: '.a.b.Outer', outputType: '.a.b.Outer.Inner' }] },
    ],
  },
  [base],
);
const index = new DescriptorIndex([main]);

describe('a symbol', () => {
  test.each([
    'a.b.Outer',
    'a.b.Outer.Inner',
    'a.b.Outer.Inner.deep',
    'a.b.Outer.Inner.Kind',
    'a.b.Outer.Inner.SOME',
    'a.b.Outer.choice',
    'a.b.Outer.one',
    'a.b.Outer.nested_ext',
    'a.b.Color',
    'a.b.RED',
    'a.b.ext',
    'a.b.Svc',
    'a.b.Svc.Do',
  ])('%s is in its file', (symbol) => {
    expect(index.declaring(symbol)?.name).toBe('main.proto');
  });

  test.each(['base.Open', 'base.Open.a'])('%s is in the file that is imported', (symbol) => {
    expect(index.declaring(symbol)?.name).toBe('base.proto');
  });

  test.each(['a.b', 'Outer', 'a.b.Outer.', 'a.b.Color.RED', ''])('%j is not found', (symbol) => {
    expect(index.declaring(symbol)).toBeUndefined();
  });
});

test('extensions are found by the message that they extend', () => {
  expect(index.extensionNumbers('base.Open')).toEqual([100, 101]);
  expect(index.extension('base.Open', 101)?.name).toBe('main.proto');
  expect(index.extension('base.Open', 102)).toBeUndefined();
});
