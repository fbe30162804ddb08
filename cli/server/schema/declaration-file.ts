/**
 * The head of a .proto: syntax or edition, package, imports and features of the file. Together with it,
 * printed declarations can be pasted into a file. `rdma-rpc describe` uses this file.
 */
import { type DescFile, Edition, FileDescriptorProtoSchema, type FileRegistry, toJson } from '#protobuf';
import type { Declared } from './registry.ts';

/**
 * Returns the name of the declaration around this declaration, or undefined for a top-level declaration of
 * the file.
 */
export function outerOf(declared: Declared): string | undefined {
  if (declared.kind === 'rpc') return `service ${declared.parent.typeName}`;
  if (declared.kind === 'service' || declared.parent === undefined) return undefined;
  return `message ${declared.parent.typeName}`;
}

export function fileOf(declared: Declared): DescFile {
  return declared.kind === 'rpc' ? declared.parent.file : declared.file;
}

function syntaxText({ edition }: DescFile): string {
  if (edition === Edition.EDITION_PROTO2) return 'syntax = "proto2";';
  if (edition === Edition.EDITION_PROTO3) return 'syntax = "proto3";';
  return `edition = "${Edition[edition]?.slice('EDITION_'.length)}";`;
}

const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function featureLines({ proto }: DescFile, registry: FileRegistry): string[] {
  const { options } = toJson(FileDescriptorProtoSchema, proto, { registry }) as {
    options?: { features?: object };
  };
  return Object.entries(options?.features ?? {}).map(
    ([name, value]) => `option features.${snake(name)} = ${value};`,
  );
}

/** Returns the full names of top-level declarations that an import of the file makes visible. */
function namesOf(file: DescFile): string[] {
  const own = [...file.messages, ...file.enums, ...file.extensions].map(({ typeName }) => typeName);
  const passedOn = file.proto.publicDependency.flatMap((index) => {
    const found = file.dependencies.find(({ proto }) => proto.name === file.proto.dependency[index]);
    return found === undefined ? [] : namesOf(found);
  });
  return [...own, ...passedOn];
}

/**
 * Returns whether `text` contains `name` as a whole name, or as the beginning of the name of a nested
 * declaration.
 */
const mentions = (text: string, name: string): boolean =>
  new RegExp(`(?<![\\w.])${name.replaceAll('.', '\\.')}(?!\\w)`).test(text);

/** Returns the head of a file with these declarations, whose text `declarationText` makes. */
export function headText(file: DescFile, registry: FileRegistry, declarations: string): string {
  const { proto } = file;
  const imports = file.dependencies
    .filter((each) => namesOf(each).some((name) => mentions(declarations, name)))
    .map((each) => `import "${each.proto.name}";`);
  const blocks = [
    [syntaxText(file)],
    proto.package === '' ? [] : [`package ${proto.package};`],
    imports,
    featureLines(file, registry),
  ];
  return blocks.flatMap((lines) => (lines.length === 0 ? [] : [lines.join('\n')])).join('\n\n');
}
