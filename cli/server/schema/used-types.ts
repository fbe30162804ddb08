/**
 * Finds the messages and enums of the same file that declarations use. When these are printed together with
 * the declarations, the text is a complete .proto. Types of other files are imported instead. `rdma-rpc
 * describe --with-types` uses this file.
 */
import type { DescEnum, DescField, DescMessage } from '#protobuf';
import { fileOf } from './declaration-file.ts';
import type { Declared } from './registry.ts';

type Type = DescMessage | DescEnum;

/** A nested type is printed in the outermost message around it. */
function outermost(type: Type): Type {
  return type.parent === undefined ? type : outermost(type.parent);
}

function usedBy(declared: Declared | DescField): Type[] {
  switch (declared.kind) {
    case 'service':
      return declared.methods.flatMap(usedBy);
    case 'rpc':
      return [declared.input, declared.output];
    case 'message':
      return [
        ...declared.fields.flatMap(usedBy),
        ...declared.nestedMessages.flatMap(usedBy),
        ...declared.nestedExtensions.flatMap(usedBy),
      ];
    case 'extension':
      return [declared.extendee, ...valueTypes(declared)];
    case 'field':
      return valueTypes(declared);
    case 'enum':
      return [];
  }
}

/** Returns the types of a field's values, for a map, a list or a single value. */
function valueTypes({
  message,
  enum: values,
}: {
  message?: DescMessage | undefined;
  enum?: DescEnum | undefined;
}) {
  return [message, values].filter((type) => type !== undefined);
}

/**
 * Returns the types that `declared` uses, in the order in which they occur, without the types that are
 * declared in it.
 */
export function usedTypes(declared: Declared): Type[] {
  const file = fileOf(declared);
  const found = new Set<Type>();
  const look = (each: Declared): void => {
    for (const type of usedBy(each).map(outermost)) {
      if (type === declared || fileOf(type) !== file || found.has(type)) continue;
      found.add(type);
      look(type);
    }
  };
  look(declared);
  return [...found];
}
