/**
 * Numbers of google.protobuf.FieldDescriptorProto and Edition, by name. This file is used wherever
 * descriptors are made or read.
 */

export const typeNumbers = {
  double: 1,
  float: 2,
  int64: 3,
  uint64: 4,
  int32: 5,
  fixed64: 6,
  fixed32: 7,
  bool: 8,
  string: 9,
  group: 10,
  message: 11,
  bytes: 12,
  uint32: 13,
  enum: 14,
  sfixed32: 15,
  sfixed64: 16,
  sint32: 17,
  sint64: 18,
} as const;

export type TypeName = keyof typeof typeNumbers;
export type ScalarName = Exclude<TypeName, 'group' | 'message' | 'enum'>;

const names = new Map(
  Object.entries(typeNumbers).map(([name, number]) => [number as number, name as TypeName]),
);

/**
 * The type of a field, by its number. A descriptor from protoc has a known number for each type; the caller
 * refuses an unknown number.
 */
export function typeName(number: number | undefined): TypeName | undefined {
  return names.get(number ?? 0);
}

export function isScalarName(name: string): name is ScalarName {
  return Object.hasOwn(typeNumbers, name) && name !== 'group' && name !== 'message' && name !== 'enum';
}

/** Returns the name of the message that protoc makes for a field `map<…>`. */
export function mapEntryName(field: string): string {
  return `${field.replace(/(?:^|_)([a-zA-Z0-9]?)/g, (_, next: string) => next.toUpperCase())}Entry`;
}

export const labels = { optional: 1, required: 2, repeated: 3 } as const;

export const editions: Readonly<Record<string, number>> = {
  proto2: 998,
  proto3: 999,
  '2023': 1000,
  '2024': 1001,
  '2026': 1002,
};

export const fieldNumberMax = 2 ** 29 - 1;
