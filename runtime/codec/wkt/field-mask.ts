/**
 * Makes field masks whose paths are checked against a message type. Applications use it.
 */
import { CodecError } from '../error.ts';
import { type Field, fieldsOf } from '../fields.ts';
import type { FieldMask } from '../google/protobuf/field_mask.rdma.ts';
import type { MessageType } from '../types.ts';

/**
 * Returns a mask for messages of type `type`. Paths are names of the .proto, joined with dots:
 * `customer.first_name`. Throws CodecError for a path that the message does not have. Only the last part of a
 * path may be repeated or a map.
 */
export function fieldMaskFor<T, Init>(type: MessageType<T, Init>, ...paths: readonly string[]): FieldMask {
  for (const path of paths) {
    // biome-ignore lint/suspicious/noExplicitAny: from one message type to the next
    let inside: MessageType<any, any> | undefined = type;
    for (const name of path.split('.')) {
      const field: Field | undefined =
        inside && fieldsOf(inside).find((candidate) => candidate.name === name);
      if (field === undefined)
        throw new CodecError(type.typeName, `unknown field ${JSON.stringify(path)} in a mask`);
      inside = field.presence === 'repeated' || field.presence === 'map' ? undefined : field.message;
    }
  }
  return { paths: [...paths] };
}
