/**
 * Comments of a .proto from its descriptor, if the descriptor contains them, by the path of the commented
 * element. `rdma-rpc describe` uses this file.
 */
import type {
  DescEnum,
  DescEnumValue,
  DescExtension,
  DescField,
  DescFile,
  DescMessage,
  DescMethod,
  DescOneof,
  DescService,
} from '#protobuf';

export type Commented =
  | DescMessage
  | DescEnum
  | DescEnumValue
  | DescExtension
  | DescField
  | DescOneof
  | DescService
  | DescMethod;

/** Field numbers of the lists of elements in google.protobuf's descriptors. */
const inFile = { message: 4, enum: 5, service: 6, extension: 7 } as const;
const inMessage = { field: 2, message: 3, enum: 4, extension: 6, oneof: 8 } as const;
/** The field number of values in an enum, and of methods in a service. */
const inList = 2;

const at = <T>(list: readonly T[], each: T): number => list.indexOf(each);

function fileOf(desc: Commented): DescFile {
  switch (desc.kind) {
    case 'message':
    case 'enum':
    case 'extension':
    case 'service':
      return desc.file;
    default:
      return desc.parent.file;
  }
}

/** Returns a path of field numbers and indices, as in SourceCodeInfo. */
function pathOf(desc: Commented): number[] {
  switch (desc.kind) {
    case 'service':
      return [inFile.service, at(desc.file.proto.service, desc.proto)];
    case 'rpc':
      return [...pathOf(desc.parent), inList, at(desc.parent.proto.method, desc.proto)];
    case 'enum_value':
      return [...pathOf(desc.parent), inList, at(desc.parent.proto.value, desc.proto)];
    case 'field':
      return [...pathOf(desc.parent), inMessage.field, at(desc.parent.proto.field, desc.proto)];
    case 'oneof':
      return [...pathOf(desc.parent), inMessage.oneof, at(desc.parent.proto.oneofDecl, desc.proto)];
    case 'message':
      return desc.parent === undefined
        ? [inFile.message, at(desc.file.proto.messageType, desc.proto)]
        : [...pathOf(desc.parent), inMessage.message, at(desc.parent.proto.nestedType, desc.proto)];
    case 'enum':
      return desc.parent === undefined
        ? [inFile.enum, at(desc.file.proto.enumType, desc.proto)]
        : [...pathOf(desc.parent), inMessage.enum, at(desc.parent.proto.enumType, desc.proto)];
    case 'extension':
      return desc.parent === undefined
        ? [inFile.extension, at(desc.file.proto.extension, desc.proto)]
        : [...pathOf(desc.parent), inMessage.extension, at(desc.parent.proto.extension, desc.proto)];
  }
}

const known = new WeakMap<DescFile, ReadonlyMap<string, readonly string[]>>();

/** Returns the comments in front of each element and behind it. */
function commentsIn(file: DescFile): ReadonlyMap<string, readonly string[]> {
  let comments = known.get(file);
  if (comments === undefined) {
    const location = file.proto.sourceCodeInfo?.location ?? [];
    comments = new Map(
      location.map(({ path, leadingComments, trailingComments }) => [
        path.join(','),
        [leadingComments, trailingComments],
      ]),
    );
    known.set(file, comments);
  }
  return comments;
}

function linesOf(comment: string): string[] {
  const lines = comment.split('\n').map((line) => line.replace(/^\s?\*? ?/, '').trimEnd());
  while (lines[0] === '') lines.shift();
  while (lines.at(-1) === '') lines.pop();
  return lines;
}

/**
 * Returns `//` lines, each with its line end, or an empty text when there are no comments. Comments behind an
 * element follow the comments in front of it.
 */
export function commentText(desc: Commented): string {
  const [before = [], behind = []] = (commentsIn(fileOf(desc)).get(pathOf(desc).join(',')) ?? []).map(
    linesOf,
  );
  const lines = before.length > 0 && behind.length > 0 ? [...before, '', ...behind] : [...before, ...behind];
  return lines.map((line) => `//${line === '' ? '' : ` ${line}`}\n`).join('');
}
