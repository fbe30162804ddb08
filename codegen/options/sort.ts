/**
 * Sorts the options of a descriptor from protoc into the order in which the linker writes them, so that both
 * inputs give the same bytes.
 */
import type {
  DescriptorProto,
  EnumDescriptorProto,
  FieldDescriptorProto,
  FileDescriptorProto,
} from '../descriptor/descriptor.rdma.ts';
import type { Schema } from '../link/schema.ts';
import { decodeOptions } from './tree.ts';

export function sortOptions(schema: Schema, file: FileDescriptorProto): void {
  const sort = (type: string, holder: { options?: Uint8Array | undefined }): void => {
    if (holder.options !== undefined) holder.options = decodeOptions(schema, type, holder.options)?.encode();
  };
  const fields = (list: readonly FieldDescriptorProto[]): void => {
    for (const field of list) sort('FieldOptions', field);
  };
  const enums = (list: readonly EnumDescriptorProto[]): void => {
    for (const type of list) {
      sort('EnumOptions', type);
      for (const value of type.value) sort('EnumValueOptions', value);
    }
  };
  const messages = (list: readonly DescriptorProto[]): void => {
    for (const message of list) {
      sort('MessageOptions', message);
      fields(message.field);
      fields(message.extension);
      enums(message.enumType);
      messages(message.nestedType);
      for (const oneof of message.oneofDecl) sort('OneofOptions', oneof);
      for (const range of message.extensionRange) sort('ExtensionRangeOptions', range);
    }
  };
  sort('FileOptions', file);
  messages(file.messageType);
  enums(file.enumType);
  fields(file.extension);
  for (const service of file.service) {
    sort('ServiceOptions', service);
    for (const method of service.method) sort('MethodOptions', method);
  }
}
