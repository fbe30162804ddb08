/**
 * Converts types that ts-proto adds to its generated code. It is used by migrate-file.ts.
 */
import { Node } from 'ts-morph';
import type { FileChange } from './file-change.ts';
import type { GeneratedNames } from './generated-imports.ts';

/** Converts `DeepPartial<HelloReply>`. Other arguments are left to the rules of generated names. */
export function migrateTsProto(file: FileChange, names: GeneratedNames): void {
  if (!file.allows('messages')) return;
  for (const reference of names.references) {
    const type = reference.node.getParent();
    if (reference.name !== 'DeepPartial' || !Node.isTypeReference(type)) continue;
    const [message] = type.getTypeArguments();
    const target = Node.isTypeReference(message) ? names.targetOf(message.getTypeName()) : undefined;
    const init = target === undefined ? undefined : names.named(`${target.found.name}Init`, target.reference);
    if (target === undefined || init === undefined) continue;
    file.convert(reference);
    file.convert(target.reference);
    file.replaceNode(type, names.use(init, target.reference.imported));
  }
}
