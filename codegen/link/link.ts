/**
 * Completes a parsed file: resolves names to full names, sets types, and converts defaults and options to the
 * form of a descriptor. The result is a file as protoc would pass it to a plugin. generate() calls it after
 * loading, beginning with imported files.
 */
import type { DescriptorProto, FieldDescriptorProto } from '../descriptor/descriptor.rdma.ts';
import { typeNumbers } from '../descriptor/types.ts';
import { interpretOptions } from '../options/interpret.ts';
import type { ParsedFile } from '../source/parsed.ts';
import { checkFile } from './check.ts';
import { defaultText } from './default.ts';
import { type DeclaredKind, join, placeOf, type Schema, type SchemaFile } from './schema.ts';

export class Linker {
  readonly #schema: Schema;
  readonly #linked: { file: SchemaFile; parsed: ParsedFile }[] = [];

  constructor(schema: Schema) {
    this.#schema = schema;
  }

  /**
   * Resolves the names of a file. This is the first step, for all files, so that options may use extensions
   * that are declared later.
   */
  resolve(file: SchemaFile, parsed: ParsedFile): void {
    this.#linked.push({ file, parsed });
    const { descriptor } = file;
    const scope = descriptor.package ?? '';
    descriptor.messageType.forEach((message, i) => {
      this.#message(file, message, `4,${i}`, scope);
    });
    descriptor.extension.forEach((field, i) => {
      this.#extension(file, field, `7,${i}`, scope);
    });
    descriptor.service.forEach((service, i) => {
      const inside = join(scope, service.name);
      service.method.forEach((method, j) => {
        const path = `6,${i},2,${j}`;
        const type = (name: string | undefined, part: number) =>
          this.#schema.resolve(file, name ?? '', inside, ['message'], placeOf(file, path, part), 'type');
        const input = type(method.inputType, 2);
        const output = type(method.outputType, 3);
        if (input !== undefined) method.inputType = `.${input.fullName}`;
        if (output !== undefined) method.outputType = `.${output.fullName}`;
      });
    });
  }

  /**
   * Handles options, which use the names of the first step, and runs the checks. The second step also runs
   * for files with errors, because users want to see all errors at once.
   */
  finish(): void {
    for (const { file, parsed } of this.#linked) {
      for (const pending of parsed.pending) interpretOptions(this.#schema, file, pending);
      for (const [field, value] of parsed.defaults) {
        const text = defaultText(this.#schema, file, field, value);
        if (text !== undefined) field.defaultValue = text;
      }
    }
    for (const { file } of this.#linked) checkFile(this.#schema, file);
  }

  #message(file: SchemaFile, message: DescriptorProto, path: string, scope: string): void {
    const inside = join(scope, message.name);
    message.field.forEach((field, i) => {
      this.#type(file, field, `${path},2,${i}`, inside);
    });
    message.extension.forEach((field, i) => {
      this.#extension(file, field, `${path},6,${i}`, inside);
    });
    message.nestedType.forEach((nested, i) => {
      this.#message(file, nested, `${path},3,${i}`, inside);
    });
  }

  #type(file: SchemaFile, field: FieldDescriptorProto, path: string, scope: string): void {
    if (field.typeName === undefined) return;
    const found = this.#schema.resolve(
      file,
      field.typeName,
      scope,
      ['message', 'enum'],
      placeOf(file, path, 6),
      'type',
    );
    if (found === undefined) return;
    field.typeName = `.${found.fullName}`;
    if (found.kind === 'enum') field.type = typeNumbers.enum;
    else if (field.type !== typeNumbers.group) field.type = typeNumbers.message;
  }

  #extension(file: SchemaFile, field: FieldDescriptorProto, path: string, scope: string): void {
    this.#type(file, field, path, scope);
    const extendee = this.#schema.resolve(
      file,
      field.extendee ?? '',
      scope,
      ['message'],
      placeOf(file, path, 2),
      'message',
    );
    if (extendee === undefined) return;
    field.extendee = `.${extendee.fullName}`;
    const declared = this.#schema.get(join(scope, field.name));
    if (declared?.kind !== 'extension' || declared.descriptor !== field) return;
    addExtension(this.#schema, declared, file);
  }
}

/** Registers an extension. The message that it extends must be known. */
export function addExtension(schema: Schema, declared: DeclaredKind<'extension'>, file: SchemaFile): void {
  const { extendee = '', number } = declared.descriptor;
  const list = schema.extensions.get(extendee.slice(1)) ?? [];
  const other = list.find(({ descriptor }) => descriptor.number === number);
  if (other !== undefined)
    file.reporter.report(
      placeOf(file, declared.path, 3),
      `${other.fullName} extends ${extendee.slice(1)} with number ${number} already`,
    );
  list.push(declared);
  schema.extensions.set(extendee.slice(1), list);
}
