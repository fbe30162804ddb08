/**
 * Finds descriptors that must not become source text, because they have invalid names or invalid defaults. A
 * parsed file cannot contain them. However, a descriptor can come from any program, and a name such as `A:
 * (code), B` would run as code when the generated module is imported. link/check-descriptor.ts and the
 * commands that read descriptors of a server call it.
 */
import { bytesOfQuoted } from '../../runtime/codec/textformat/escape.ts';
import { integerRange } from '../options/number.ts';
import { typeName } from './types.ts';

interface Named {
  readonly name?: string | undefined;
}
interface FieldLike extends Named {
  readonly type?: number | undefined;
  readonly defaultValue?: string | undefined;
}
interface EnumLike extends Named {
  readonly value: readonly Named[];
}
interface MessageLike extends Named {
  readonly field: readonly FieldLike[];
  readonly extension: readonly FieldLike[];
  readonly nestedType: readonly MessageLike[];
  readonly enumType: readonly EnumLike[];
  readonly oneofDecl: readonly Named[];
}
/** A google.protobuf.FileDescriptorProto, of our own codec or of protobuf-es. */
export interface FileLike extends Named {
  readonly package?: string | undefined;
  readonly messageType: readonly MessageLike[];
  readonly enumType: readonly EnumLike[];
  readonly extension: readonly FieldLike[];
  readonly service: readonly (Named & { readonly method: readonly Named[] })[];
}

export interface DescriptorFault {
  /** Path of the element, as field numbers and indices like in SourceCodeInfo. */
  readonly path: string;
  /** Field number of the wrong part. */
  readonly part: number;
  readonly message: string;
}

const identifier = /^[A-Za-z_]\w*$/;
const shownMax = 80;

/** Quotes a possibly hostile text for an error, and shortens a long one. */
function shown(text: string): string {
  return JSON.stringify(text.length <= shownMax ? text : `${text.slice(0, shownMax - 1)}…`);
}

/**
 * Returns whether `text` is a valid default for a field of this type, in the form that compilers write.
 * Defaults of enums are names, which the caller looks up.
 */
function isDefault(text: string, type: number | undefined): boolean {
  const name = typeName(type);
  switch (name) {
    case undefined:
    case 'message':
    case 'group':
      return false;
    case 'string':
      return true;
    case 'bytes':
      return typeof bytesOfQuoted(text, 'replaced') !== 'string';
    case 'enum':
      return identifier.test(text);
    case 'bool':
      return text === 'true' || text === 'false';
    case 'float':
    case 'double':
      return /^-?(?:inf|nan|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)$/.test(text);
    default: {
      if (!/^(?:0|-?[1-9]\d{0,19})$/.test(text)) return false;
      const [least, most] = integerRange(name);
      return BigInt(text) >= least && BigInt(text) <= most;
    }
  }
}

function* named({ name = '' }: Named, path: string): Generator<DescriptorFault> {
  if (!identifier.test(name))
    yield { path, part: 1, message: `${shown(name)} is not a name: names have letters, digits and _ only` };
}

function* fieldFaults(field: FieldLike, path: string): Generator<DescriptorFault> {
  yield* named(field, path);
  const { type, defaultValue: text } = field;
  // protobuf-es has an empty text when the default is missing.
  if (text !== undefined && text !== '' && !isDefault(text, type))
    yield { path, part: 7, message: `${shown(text)} is not a default of ${typeName(type) ?? 'its type'}` };
}

function* enumFaults(type: EnumLike, path: string): Generator<DescriptorFault> {
  yield* named(type, path);
  for (const [i, value] of type.value.entries()) yield* named(value, `${path},2,${i}`);
}

function* messageFaults(message: MessageLike, path: string): Generator<DescriptorFault> {
  yield* named(message, path);
  for (const [i, each] of message.field.entries()) yield* fieldFaults(each, `${path},2,${i}`);
  for (const [i, each] of message.nestedType.entries()) yield* messageFaults(each, `${path},3,${i}`);
  for (const [i, each] of message.enumType.entries()) yield* enumFaults(each, `${path},4,${i}`);
  for (const [i, each] of message.extension.entries()) yield* fieldFaults(each, `${path},6,${i}`);
  for (const [i, each] of message.oneofDecl.entries()) yield* named(each, `${path},8,${i}`);
}

/** Yields all faults of a file descriptor, in the order of the descriptor. */
export function* descriptorFaults(file: FileLike): Generator<DescriptorFault> {
  const { package: scope = '' } = file;
  if (scope !== '' && !scope.split('.').every((part) => identifier.test(part)))
    yield { path: '2', part: 1, message: `${shown(scope)} is not the name of a package` };
  for (const [i, each] of file.messageType.entries()) yield* messageFaults(each, `4,${i}`);
  for (const [i, each] of file.enumType.entries()) yield* enumFaults(each, `5,${i}`);
  for (const [i, each] of file.extension.entries()) yield* fieldFaults(each, `7,${i}`);
  for (const [i, each] of file.service.entries()) {
    yield* named(each, `6,${i}`);
    for (const [j, method] of each.method.entries()) yield* named(method, `6,${i},2,${j}`);
  }
}
