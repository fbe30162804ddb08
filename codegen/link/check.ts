/** The rules of the language that need names to be resolved: numbers, ranges, enums, extensions. Called by the linker for each parsed file; protoc has checked its own. */
import type {
  DescriptorProto,
  EnumDescriptorProto,
  FieldDescriptorProto,
} from '../descriptor/descriptor.rdma.ts';
import { fieldNumberMax, labels, typeName } from '../descriptor/types.ts';
import { decodeOptions, OptionTree } from '../options/tree.ts';
import { join, placeOf, type Schema, type SchemaFile } from './schema.ts';

class Checker {
  private readonly schema: Schema;
  private readonly file: SchemaFile;

  constructor(schema: Schema, file: SchemaFile) {
    this.schema = schema;
    this.file = file;
  }

  run(): void {
    const { descriptor } = this.file;
    const scope = descriptor.package ?? '';
    descriptor.messageType.forEach((message, i) => {
      this.message(message, `4,${i}`, join(scope, message.name));
    });
    descriptor.enumType.forEach((type, i) => {
      this.enum(type, `5,${i}`);
    });
    descriptor.extension.forEach((field, i) => {
      this.extension(field, `7,${i}`);
    });
  }

  private report(path: string, part: number, message: string): void {
    this.file.reporter.report(placeOf(this.file, path, part), message);
  }

  private message(message: DescriptorProto, path: string, fullName: string): void {
    const { syntax } = this.file.descriptor;
    const numbers = new Map<number, string>();
    message.field.forEach((field, i) => {
      const fieldPath = `${path},2,${i}`;
      const { number = 0, name = '' } = field;
      const other = numbers.get(number);
      if (other !== undefined) this.report(fieldPath, 3, `the number ${number} is used by ${other} already`);
      numbers.set(number, name);
      this.number(number, fieldPath);
      if (message.reservedRange.some(({ start = 0, end = 0 }) => number >= start && number < end))
        this.report(fieldPath, 3, `the number ${number} is reserved in message ${message.name}`);
      if (message.reservedName.includes(name))
        this.report(fieldPath, 1, `the name ${name} is reserved in message ${message.name}`);
      if (message.extensionRange.some(({ start = 0, end = 0 }) => number >= start && number < end))
        this.report(fieldPath, 3, `the number ${number} lies in a range that is left to extensions`);
      this.options(field, fieldPath);
    });
    if (syntax === 'proto3' && message.extensionRange.length > 0)
      this.report(`${path},5,0`, 1, 'proto3 has no extension ranges');
    message.extensionRange.forEach(({ start = 0, end = 0 }, i) => {
      if (start < 1 || end - 1 > fieldNumberMax || end <= start)
        this.report(
          `${path},5,${i}`,
          1,
          `${start} to ${end - 1} is no range of field numbers (1 to ${fieldNumberMax})`,
        );
    });
    if (message.options?.[0] === 0x38) this.mapEntry(message, path);
    message.nestedType.forEach((nested, i) => {
      this.message(nested, `${path},3,${i}`, join(fullName, nested.name));
    });
    message.enumType.forEach((type, i) => {
      this.enum(type, `${path},4,${i}`);
    });
    message.extension.forEach((field, i) => {
      this.extension(field, `${path},6,${i}`);
    });
  }

  /** The default of a value that is left out is the enum's first. */
  private mapEntry(entry: DescriptorProto, path: string): void {
    const type = this.schema.get(entry.field[1]?.typeName ?? '');
    if (type?.kind === 'enum' && (type.descriptor.value[0]?.number ?? 0) !== 0)
      this.report(path, 1, `the first value of ${type.fullName} must be 0, since it is the value of a map`);
  }

  private number(number: number, path: string): void {
    if (number < 1 || number > fieldNumberMax)
      this.report(path, 3, `field number ${number} is not between 1 and ${fieldNumberMax}`);
    else if (number >= 19000 && number <= 19999)
      this.report(path, 3, 'field numbers 19000 to 19999 belong to protobuf itself');
  }

  private options(field: FieldDescriptorProto, path: string): void {
    const options = decodeOptions(this.schema, 'FieldOptions', field.options);
    const type = typeName(field.type) ?? '';
    const packable = !['string', 'bytes', 'message', 'group'].includes(type);
    if (options?.values.get(2)?.list[0] === true && (field.label !== labels.repeated || !packable))
      this.report(path, 1, 'only repeated numbers can be packed');
    if ((options?.values.get(6)?.list[0] ?? 0n) !== 0n && !type.endsWith('64'))
      this.report(path, 1, 'jstype is for 64-bit integers only');
  }

  private extension(field: FieldDescriptorProto, path: string): void {
    const extendee = this.schema.messageOf(field.extendee ?? '');
    const { number = 0 } = field;
    if (extendee === undefined) return;
    this.options(field, path);
    if (this.file.descriptor.syntax === 'proto3' && !/^google\.protobuf\.\w+Options$/.test(extendee.fullName))
      this.report(
        path,
        2,
        `proto3 extends nothing but the options of google.protobuf, not ${extendee.fullName}`,
      );
    else if (
      !extendee.descriptor.extensionRange.some(({ start = 0, end = 0 }) => number >= start && number < end)
    )
      this.report(path, 3, `${extendee.fullName} leaves no range with ${number} to extensions`);
  }

  private enum(type: EnumDescriptorProto, path: string): void {
    const options = decodeOptions(this.schema, 'EnumOptions', type.options);
    const alias = options?.values.get(2)?.list[0] === true;
    const numbers = new Map<number, string>();
    if (type.value.length === 0) this.report(path, 1, `enum ${type.name} has no values`);
    type.value.forEach(({ name = '', number = 0 }, i) => {
      const valuePath = `${path},2,${i}`;
      if (i === 0 && number !== 0 && this.isOpen(options))
        this.report(
          valuePath,
          2,
          `the first value of enum ${type.name} must be 0${this.file.descriptor.syntax === 'proto3' ? ' in proto3' : ', or its enum_type CLOSED'}`,
        );
      if (number !== (number | 0)) this.report(valuePath, 2, `enum value ${number} does not fit 32 bits`);
      const other = numbers.get(number);
      if (other !== undefined && !alias)
        this.report(
          valuePath,
          2,
          `the number ${number} is used by ${other} already; option allow_alias = true allows it`,
        );
      numbers.set(number, name);
      if (type.reservedRange.some(({ start = 0, end = 0 }) => number >= start && number <= end))
        this.report(valuePath, 2, `the number ${number} is reserved in enum ${type.name}`);
      if (type.reservedName.includes(name))
        this.report(valuePath, 1, `the name ${name} is reserved in enum ${type.name}`);
    });
  }

  /** enum_type is field 2 of FeatureSet, OPEN is 1. */
  private isOpen(options: OptionTree | undefined): boolean {
    const { syntax, options: bytes } = this.file.descriptor;
    if (syntax !== 'editions') return syntax === 'proto3';
    const own = options?.values.get(7)?.list[0];
    const whole = decodeOptions(this.schema, 'FileOptions', bytes)?.values.get(50)?.list[0];
    for (const features of [own, whole]) {
      const type = features instanceof OptionTree ? features.values.get(2)?.list[0] : undefined;
      if (type !== undefined) return type === 1n;
    }
    return true;
  }
}

export function checkFile(schema: Schema, file: SchemaFile): void {
  new Checker(schema, file).run();
}
