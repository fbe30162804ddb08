/**
 * Opens the source of declarations: given files, else the server. For the commands that list, describe, call
 * and explain.
 */
import type { Channel } from '../../../runtime/client/channel-type.ts';
import { fromFiles, type Schema, type SchemaFlags } from './schema.ts';

/** `channel` is called only when no file is given. */
export async function openSchema(flags: SchemaFlags, channel: () => Channel): Promise<Schema> {
  if (fromFiles(flags)) return (await import('./file-schema.ts')).fileSchema(flags);
  const { channelReflection, remoteSchema } = await import('./remote-schema.ts');
  return remoteSchema(channelReflection(channel()));
}
