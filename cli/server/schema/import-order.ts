/**
 * Sorts files into the order that protobuf-es needs. This file is used when a registry is made.
 */
import type { FileDescriptorProto } from '#protobuf';

/**
 * Each file follows its imports. Throws when an import is missing, or when files import each other in a
 * circle.
 */
export function inOrder(files: readonly FileDescriptorProto[]): FileDescriptorProto[] {
  const byName = new Map(files.map((file) => [file.name, file]));
  const done = new Set<string>();
  const ordered: FileDescriptorProto[] = [];
  // Use an explicit stack, because chains of imports may be long.
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
