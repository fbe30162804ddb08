/**
 * Handles files that are already linked, as descriptors: adds the information that a schema needs besides
 * their names. The plugin and the loader call it.
 */
import type { DescriptorProto } from '../descriptor/descriptor.rdma.ts';
import { addExtension } from './link.ts';
import { join, type Schema, type SchemaFile } from './schema.ts';

/** Registers the extensions that a file declares. This must be called when all files are in the schema. */
export function addExtensions(schema: Schema, file: SchemaFile): void {
  const add = (scope: string, name: string | undefined): void => {
    const declared = schema.get(join(scope, name));
    if (declared?.kind === 'extension') addExtension(schema, declared, file);
  };
  const visit = (scope: string, message: DescriptorProto): void => {
    const inside = join(scope, message.name);
    for (const { name } of message.extension) add(inside, name);
    for (const nested of message.nestedType) visit(inside, nested);
  };
  const { package: scope = '', extension, messageType } = file.descriptor;
  for (const { name } of extension) add(scope, name);
  for (const message of messageType) visit(scope, message);
}
