/**
 * The functions that generated code calls: the `$` of every generated file that has messages. Applications
 * must not use them, because they change with the generator.
 */

export { type Extendable, type Extension, extension } from '../extension.ts';
export { fieldEntries } from '../fields.ts';
export { type FileDescriptor, fileDescriptor } from '../file-descriptor.ts';
export type { Source } from '../memory/source.ts';
export { noRoom, type Writer } from '../memory/writer.ts';
export * from '../message.ts';
export { Method } from '../service/method.ts';
export {
  type ArrayClass,
  arrays,
  hasArray,
  noArrays,
  octets,
  readArray,
} from '../typed-array.ts';
export type {
  FieldEntry,
  MessageType,
  MethodDefinition,
  MethodOptions,
  ServiceDefinition,
} from '../types.ts';
export { boundUnknown, keepUnknown, type UnknownFields, writeUnknown } from '../unknown.ts';
export { writeBulk } from './bulk-field.ts';
export * from './check.ts';
export * from './jstype.ts';
export * from './maps.ts';
export * from './packed.ts';
export * from './proto2.ts';
export * from './read.ts';
export * from './runs.ts';
export * from './size.ts';
export * from './walk.ts';
export * from './write.ts';
export * from './write-field.ts';
