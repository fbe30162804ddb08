/**
 * Checks the rules that every generated file relies on, for files that came as descriptors. A buf image or a
 * request of another program has not been parsed by our parser, and perhaps not by any parser. Further rules
 * of a compiler are not checked here, because a violation of these cannot damage the output. The plugin and
 * the loader call it when all files are in the schema.
 */
import type { DescriptorProto, FieldDescriptorProto } from '../descriptor/descriptor.rdma.ts';
import { descriptorFaults } from '../descriptor/faults.ts';
import { fieldNumberMax, labels, typeName } from '../descriptor/types.ts';
import { decodeOptions } from '../options/tree.ts';
import { placeOf, type Schema, type SchemaFile } from './schema.ts';

/** The field number of MessageOptions.map_entry. */
const mapEntryField = 7;
const mapKeyNever = new Set(['double', 'float', 'bytes', 'enum', 'message', 'group']);

class DescriptorChecker {
  readonly #schema: Schema;
  readonly #file: SchemaFile;

  constructor(schema: Schema, file: SchemaFile) {
    this.#schema = schema;
    this.#file = file;
  }

  run(): void {
    const { descriptor, path } = this.#file;
    // The output is named after its file, and must not leave the output directory.
    if (path.split('/').some((part) => part === '' || part === '.' || part === '..'))
      this.#report('', 1, `${JSON.stringify(path)} is not a path below an include directory`);
    if (!['', 'proto2', 'proto3', 'editions'].includes(descriptor.syntax ?? ''))
      this.#report('12', 1, `syntax ${JSON.stringify(descriptor.syntax)} is not supported`);
    for (const { path: at, part, message } of descriptorFaults(descriptor)) this.#report(at, part, message);
    descriptor.messageType.forEach((message, i) => {
      this.#message(message, `4,${i}`);
    });
    descriptor.enumType.forEach(({ value, name }, i) => {
      if (value.length === 0) this.#report(`5,${i}`, 1, `enum ${name} has no values`);
    });
    descriptor.extension.forEach((field, i) => {
      this.#extension(field, `7,${i}`);
    });
    descriptor.service.forEach(({ method }, i) => {
      method.forEach(({ inputType, outputType }, j) => {
        this.#type(inputType, ['message'], `6,${i},2,${j}`, 2);
        this.#type(outputType, ['message'], `6,${i},2,${j}`, 3);
      });
    });
  }

  #report(path: string, part: number, message: string): void {
    this.#file.reporter.report(placeOf(this.#file, path, part), message);
  }

  #type(
    name: string | undefined,
    kinds: readonly ('message' | 'enum')[],
    path: string,
    part: number,
  ): ReturnType<Schema['get']> {
    const found = name?.startsWith('.') === true ? this.#schema.get(name) : undefined;
    if (found !== undefined && (kinds as readonly string[]).includes(found.kind)) return found;
    this.#report(path, part, `unknown type ${JSON.stringify(name ?? '')}`);
    return undefined;
  }

  #message(message: DescriptorProto, path: string): void {
    const numbers = new Set<number>();
    message.field.forEach((field, i) => {
      const at = `${path},2,${i}`;
      const { number = 0, oneofIndex } = field;
      if (numbers.has(number)) this.#report(at, 3, `the number ${number} is used twice`);
      numbers.add(number);
      if (
        oneofIndex !== undefined &&
        (message.oneofDecl[oneofIndex] === undefined || field.label === labels.repeated)
      )
        this.#report(at, 9, `${field.name} is in oneof number ${oneofIndex}, which it cannot be`);
      this.#field(field, at);
    });
    if (decodeOptions(this.#schema, 'MessageOptions', message.options)?.flag(mapEntryField) === true)
      this.#mapEntry(message, path);
    message.nestedType.forEach((nested, i) => {
      this.#message(nested, `${path},3,${i}`);
    });
    message.enumType.forEach(({ value, name }, i) => {
      if (value.length === 0) this.#report(`${path},4,${i}`, 1, `enum ${name} has no values`);
    });
    message.extension.forEach((field, i) => {
      this.#extension(field, `${path},6,${i}`);
    });
  }

  #field(field: FieldDescriptorProto, path: string): void {
    const { number = 0, label = labels.optional, name, defaultValue } = field;
    if (number < 1 || number > fieldNumberMax)
      this.#report(path, 3, `field number ${number} is not between 1 and ${fieldNumberMax}`);
    if (label < labels.optional || label > labels.repeated)
      this.#report(path, 4, `${name} has a label of number ${label}, which does not exist`);
    const type = typeName(field.type);
    if (type === undefined)
      this.#report(path, 5, `${name} has a type of number ${field.type ?? 0}, which does not exist`);
    else if (type === 'message' || type === 'group') this.#type(field.typeName, ['message'], path, 6);
    else if (type === 'enum') {
      const found = this.#type(field.typeName, ['enum'], path, 6);
      if (found?.kind !== 'enum' || defaultValue === undefined) return;
      if (!found.descriptor.value.some((value) => value.name === defaultValue))
        this.#report(path, 7, `${JSON.stringify(defaultValue)} is not a value of ${found.fullName}`);
    }
  }

  #extension(field: FieldDescriptorProto, path: string): void {
    this.#type(field.extendee, ['message'], path, 2);
    this.#field(field, path);
  }

  #mapEntry({ field, name }: DescriptorProto, path: string): void {
    const [key, value] = field;
    const wrong =
      field.length !== 2 ||
      key?.number !== 1 ||
      value?.number !== 2 ||
      mapKeyNever.has(typeName(key.type) ?? 'message') ||
      field.some(({ label }) => label === labels.repeated);
    if (wrong) this.#report(path, 1, `${name} is not the entry of a map: it needs a key 1 and a value 2`);
  }
}

/** Reports each violation. */
export function checkDescriptor(schema: Schema, file: SchemaFile): void {
  new DescriptorChecker(schema, file).run();
}
