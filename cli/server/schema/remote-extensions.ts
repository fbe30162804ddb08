/**
 * Finds extensions of a call's messages. The server must be asked for the files that declare them, because
 * imports do not lead to these files. `rdma-rpc call` uses this file.
 */
import type { DescriptorProto, FileDescriptorProto } from '#protobuf';
import { extensionNumbers, fileOfExtension, type Reflection } from './reflection-client.ts';

/** Maximum number of queries, because a server could declare extensions without end. */
const questionsMax = 1000;

/** Returns the full names of the extendable messages, and the known extension numbers of each. */
function extendable(files: Iterable<FileDescriptorProto>): ReadonlyMap<string, ReadonlySet<number>> {
  const found = new Map<string, Set<number>>();
  const known: [extendee: string, number: number][] = [];
  const visit = (scope: string, message: DescriptorProto): void => {
    const name = `${scope}${message.name}`;
    if (message.extensionRange.length > 0) found.set(name, new Set());
    for (const each of message.nestedType) visit(`${name}.`, each);
    for (const each of message.extension) known.push([each.extendee, each.number]);
  };
  for (const file of files) {
    // Options are extended in many files, but are not part of calls.
    if (file.package === 'google.protobuf') continue;
    const scope = file.package === '' ? '' : `${file.package}.`;
    for (const message of file.messageType) visit(scope, message);
    for (const each of file.extension) known.push([each.extendee, each.number]);
  }
  for (const [extendee, number] of known) found.get(extendee.replace(/^\./, ''))?.add(number);
  return found;
}

/**
 * Returns `files` together with the files that declare extensions of their messages, and of the messages in
 * those files. Throws when the limit is exceeded.
 */
export async function withExtensions(
  reflection: Reflection,
  files: readonly FileDescriptorProto[],
): Promise<FileDescriptorProto[]> {
  const all = new Map(files.map((file) => [file.name, file]));
  const asked = new Set<string>();
  let questions = 0;
  const count = (): void => {
    if (++questions > questionsMax)
      throw new Error(
        `the messages of this call have extensions that could only be found with more than ${questionsMax} questions`,
      );
  };
  for (;;) {
    const next = [...extendable(all.values())].find(([name]) => !asked.has(name));
    if (next === undefined) return [...all.values()];
    const [name, known] = next;
    asked.add(name);
    count();
    for (const number of await extensionNumbers(reflection, name)) {
      if (known.has(number)) continue;
      count();
      for (const file of await fileOfExtension(reflection, name, number))
        if (!all.has(file.name)) all.set(file.name, file);
    }
  }
}
