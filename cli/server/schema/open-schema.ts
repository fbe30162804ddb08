/**
 * Opens the source of declarations, which is the given files or, without files, the server. The commands that
 * list, describe, call and explain use it.
 */
import type { Channel } from '../../../runtime/client/channel-type.ts';
import { fromFiles, type Schema, type SchemaFlags } from './schema.ts';

/**
 * Opens the schema from files or from the reflection of a server. `channel` is called only when no file is
 * given.
 */
export async function openSchema(flags: SchemaFlags, channel: () => Channel): Promise<Schema> {
  if (fromFiles(flags)) return (await import('./file-schema.ts')).fileSchema(flags);
  const { channelReflection, remoteSchema } = await import('./remote-schema.ts');
  return remoteSchema(channelReflection(channel()));
}
