/**
 * What the fields of a descriptor differ in by syntax, edition and features, as far as messages and their JSON show it: presence, and messages between two tags.
 * Used by dynamic-type.ts.
 */
import type { FieldDescriptorProto } from '../../codegen/descriptor/descriptor.rdma.ts';
import { labels, typeName } from '../../codegen/descriptor/types.ts';
import { readInt32, readLength, readTag, skipField } from '../../runtime/codec/read.ts';
import { Source } from '../../runtime/codec/source.ts';
import type { Presence } from '../../runtime/codec/types.ts';

/** Values of google.protobuf.FeatureSet. */
export interface Features {
  readonly presence: number;
  readonly encoding: number;
}

const explicit = 1;
const implicit = 2;
const required = 3;
const delimited = 2;

/** Field numbers of `features` in the messages that have it. */
const featuresIn = { FileOptions: 50, MessageOptions: 12, FieldOptions: 21 } as const;

/** The varints and the messages among the fields of `bytes` [at, end), by tag: the value, or where the content is. */
function lastOf(source: Source, at: number, end: number, wanted: number): number | undefined {
  let found: number | undefined;
  while (at < end) {
    const tag = readTag(source, at, end);
    const content = source.at;
    at = skipField(source, tag, content, end, 0);
    if (tag === wanted) found = content;
  }
  return found;
}

/** The features of something with `options`, inside of what has the features `outer`. */
export function withFeatures(
  outer: Features,
  type: keyof typeof featuresIn,
  options: Uint8Array | undefined,
): Features {
  if (options === undefined) return outer;
  const source = new Source();
  source.reset(options);
  const set = lastOf(source, 0, options.length, featuresIn[type] * 8 + 2);
  if (set === undefined) return outer;
  const end = readLength(source, set, options.length);
  const start = source.at;
  const value = (number: number): number | undefined => {
    const at = lastOf(source, start, end, number * 8);
    return at === undefined ? undefined : readInt32(source, at, end) || undefined;
  };
  return { presence: value(1) ?? outer.presence, encoding: value(5) ?? outer.encoding };
}

/** `syntax` as descriptors have it. */
export function featuresOf(syntax: string | undefined): Features {
  return { presence: syntax === 'proto3' ? implicit : explicit, encoding: 0 };
}

/** Of a field that is no map and in no oneof. */
export function presenceOf(field: FieldDescriptorProto, features: Features): Presence {
  if (field.label === labels.repeated) return 'repeated';
  const { presence } = withFeatures(features, 'FieldOptions', field.options);
  if (field.label === labels.required || presence === required) return 'required';
  if (field.proto3Optional === true || typeName(field.type) === 'message' || typeName(field.type) === 'group')
    return 'optional';
  return presence === implicit ? 'implicit' : 'optional';
}

/** A message between two tags instead of behind a length. */
export function isDelimited(field: FieldDescriptorProto, features: Features): boolean {
  const type = typeName(field.type);
  return (
    type === 'group' ||
    (type === 'message' && withFeatures(features, 'FieldOptions', field.options).encoding === delimited)
  );
}
