/** What a server declares, wherever that is known from: its reflection, or files. For the commands that list, describe and call. */
import type { FileDescriptorProto, FileRegistry } from '#protobuf';
import type { Channel } from '../../runtime/client/channel-type.ts';

export interface Schema {
  /** Who declares, as it stands in an error: `the server declares no X`. */
  readonly owner: string;
  /** Full names of the services, sorted. */
  services(): Promise<string[]>;
  /**
   * The files that declare `symbol` and all that those need. Undefined: nothing has that name. `extensions`: with those of the messages in
   * the files, which no import leads to.
   */
  declaring(symbol: string, extensions?: 'extensions'): Promise<FileRegistry | undefined>;
}

export interface SchemaFlags {
  readonly proto: readonly string[];
  readonly include: readonly string[];
  readonly protoset: readonly string[];
}

export const fromFiles = ({ proto, protoset }: SchemaFlags): boolean => proto.length + protoset.length > 0;

/** `channel` is only asked for when no file is given. */
export async function openSchema(flags: SchemaFlags, channel: () => Channel): Promise<Schema> {
  if (fromFiles(flags)) return (await import('./file-schema.ts')).fileSchema(flags);
  return (await import('./remote-schema.ts')).remoteSchema(channel());
}

/** Each file after those that it imports. Throws where one is missing, or files import each other in a circle. */
export function inOrder(files: readonly FileDescriptorProto[]): FileDescriptorProto[] {
  const byName = new Map(files.map((file) => [file.name, file]));
  const done = new Set<string>();
  const ordered: FileDescriptorProto[] = [];
  // A stack, since chains of imports may be long.
  for (const file of byName.values()) {
    const open = [{ file, next: 0 }];
    while (open.length > 0 && !done.has(file.name)) {
      const top = open.at(-1)!;
      const name = top.file.dependency[top.next++];
      if (name === undefined) {
        done.add(top.file.name);
        ordered.push(top.file);
        open.pop();
      } else if (!done.has(name)) {
        const imported = byName.get(name);
        if (imported === undefined) throw new Error(`${top.file.name} imports ${name}, which is missing`);
        if (open.some((each) => each.file === imported))
          throw new Error(`${name} and ${top.file.name} import each other in a circle`);
        open.push({ file: imported, next: 0 });
      }
    }
  }
  return ordered;
}
