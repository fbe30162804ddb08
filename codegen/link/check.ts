/**
 * Checks the rules of the language that need resolved names, about numbers, ranges, features and extensions.
 * The linker calls it for each parsed file. For files from protoc, protoc has checked the rules.
 */

import { jsonNameOf } from '../../runtime/codec/fields.ts';
import type { DescriptorProto, FieldDescriptorProto } from '../descriptor/descriptor.rdma.ts';
import { fieldNumberMax, labels, mapEntryName } from '../descriptor/types.ts';
import { decodeOptions } from '../options/tree.ts';
import { undeclared } from './check-declared.ts';
import { checkEnum } from './check-enum.ts';
import { fieldFaults } from './check-field.ts';
import { fileFaults } from './check-file.ts';
import { jsonConflicts } from './check-json.ts';
import { checkRanges, checkReservedNames, type NumberRange } from './check-ranges.ts';
import { type Styled, styleFault } from './check-style.ts';
import { misplacedOptions } from './check-targets.ts';
import { FeatureScope, jsonBestEffort, visibilities } from './features.ts';
import { join, placeOf, type Schema, type SchemaFile } from './schema.ts';
import { whyLocal } from './visibility.ts';

/**
 * The field numbers of MessageOptions.message_set_wire_format and of its
 * deprecated_legacy_json_field_conflicts.
 */
const messageSetField = 1;
const legacyJsonField = 11;
const exported = 2;

class Checker {
  readonly #schema: Schema;
  readonly #file: SchemaFile;

  constructor(schema: Schema, file: SchemaFile) {
    this.#schema = schema;
    this.#file = file;
  }

  run(): void {
    const schema = this.#schema;
    const file = this.#file;
    const { descriptor } = file;
    const features = FeatureScope.ofFile(schema, file);
    this.#style('package', descriptor.package ?? '', '2', features);
    this.#options('FileOptions', descriptor.options, '8');
    for (const fault of fileFaults(schema, file)) this.#report('8', 1, fault);
    descriptor.messageType.forEach((message, i) => {
      this.#message(message, `4,${i}`, features, descriptor.package ?? '', true);
    });
    descriptor.enumType.forEach((type, i) => {
      this.#enum(type, `5,${i}`, features);
    });
    descriptor.extension.forEach((field, i) => {
      this.#extension(field, `7,${i}`, features, descriptor.package ?? '');
    });
    descriptor.service.forEach((service, i) => {
      const path = `6,${i}`;
      const inside = features.inside('ServiceOptions', service.options);
      this.#style('service', service.name, path, inside);
      this.#options('ServiceOptions', service.options, path);
      service.method.forEach(({ name, inputType, outputType, options }, j) => {
        const at = `${path},2,${j}`;
        this.#style('method', name, at, inside.inside('MethodOptions', options));
        this.#options('MethodOptions', options, at);
        this.#use(inputType, at, 2);
        this.#use(outputType, at, 3);
      });
    });
  }

  readonly #report = (
    path: string,
    part: number | undefined,
    message: string,
    severity?: 'warning',
  ): void => {
    this.#file.reporter.report(placeOf(this.#file, path, part), message, severity);
  };

  #style(what: Styled, name = '', path: string, features: FeatureScope): void {
    const fault = name === '' ? undefined : styleFault(what, name, features);
    if (fault !== undefined) this.#report(path, 1, fault);
  }

  #options(type: string, options: Uint8Array | undefined, path: string): void {
    for (const fault of misplacedOptions(this.#schema, type, options)) this.#report(path, 1, fault);
  }

  /** Reports a type of another file that this file must not use. */
  #use(typeName: string | undefined, path: string, part: number): void {
    const found = this.#schema.get(typeName ?? '');
    if (found === undefined || found.file === this.#file) return;
    if (found.kind !== 'message' && found.kind !== 'enum') return;
    if (this.#schema.isForOptions(this.#file, found.file))
      this.#report(
        path,
        part,
        `${found.fullName} is declared in ${found.file.path}, which is imported for its options only: import it without the word option`,
      );
    const why = whyLocal(found, FeatureScope.ofFile(this.#schema, found.file));
    if (why !== undefined)
      this.#report(path, part, `${found.fullName} is not visible outside of ${found.file.path}: ${why}`);
  }

  #enum(type: Parameters<typeof checkEnum>[2], path: string, outer: FeatureScope, exportable = true): void {
    this.#nested(type.visibility, path, outer, exportable);
    const features = outer.inside('EnumOptions', type.options);
    this.#style('enum', type.name, path, features);
    this.#options('EnumOptions', type.options, path);
    type.value.forEach(({ name, options }, i) => {
      this.#style('value', name, `${path},2,${i}`, features.inside('EnumValueOptions', options));
      this.#options('EnumValueOptions', options, `${path},2,${i}`);
    });
    checkEnum(this.#schema, this.#file, type, path, features, this.#report);
  }

  /** STRICT allows no exported types inside messages, except enums in messages that contain nothing else. */
  #nested(visibility: number | undefined, path: string, features: FeatureScope, exportable: boolean): void {
    if (visibility !== exported || exportable || features.get('visibility') !== visibilities.strict) return;
    this.#report(path, 1, 'nothing in a message is for export where default_symbol_visibility is STRICT');
  }

  #message(
    message: DescriptorProto,
    path: string,
    outer: FeatureScope,
    scope: string,
    exportable: boolean,
  ): void {
    const inside = join(scope, message.name);
    const { syntax } = this.#file.descriptor;
    const features = outer.inside('MessageOptions', message.options);
    const options = decodeOptions(this.#schema, 'MessageOptions', message.options);
    const isEntry = message.options?.[0] === 0x38;
    if (!isEntry) this.#style('message', message.name, path, features);
    this.#options('MessageOptions', message.options, path);
    message.oneofDecl.forEach(({ name, options: own }, i) => {
      this.#style('oneof', name, `${path},8,${i}`, features.inside('OneofOptions', own));
      this.#options('OneofOptions', own, `${path},8,${i}`);
    });
    message.extensionRange.forEach(({ options: own }, i) => {
      this.#options('ExtensionRangeOptions', own, `${path},5,${i}`);
    });
    this.#nested(message.visibility, path, features, exportable);
    const numbers = new Map<number, string>();
    message.field.forEach((field, i) => {
      const fieldPath = `${path},2,${i}`;
      const { number = 0, name = '' } = field;
      const other = numbers.get(number);
      if (other !== undefined) this.#report(fieldPath, 3, `the number ${number} is used by ${other} already`);
      numbers.set(number, name);
      this.#number(number, fieldPath);
      if (message.reservedRange.some(({ start = 0, end = 0 }) => number >= start && number < end))
        this.#report(fieldPath, 3, `the number ${number} is reserved in message ${message.name}`);
      if (message.reservedName.includes(name))
        this.#report(fieldPath, 1, `the name ${name} is reserved in message ${message.name}`);
      if (message.extensionRange.some(({ start = 0, end = 0 }) => number >= start && number < end))
        this.#report(fieldPath, 3, `the number ${number} lies in a range that is left to extensions`);
      this.#field('field', field, fieldPath, features);
      this.#entryType(field, message, fieldPath);
    });
    this.#ranges(message, path);
    const lenient = features.get('jsonFormat') === jsonBestEffort || options?.flag(legacyJsonField) === true;
    for (const { field, message: fault, severity } of jsonConflicts(message, lenient))
      this.#report(`${path},2,${field}`, 1, fault, severity === 'warning' ? severity : undefined);
    if (options?.flag(messageSetField) === true) this.#messageSet(message, path);
    if (syntax === 'proto3' && message.extensionRange.length > 0)
      this.#report(`${path},5,0`, 1, 'proto3 has no extension ranges');
    message.extensionRange.forEach(({ start = 0, end = 0 }, i) => {
      if (start < 1 || end - 1 > fieldNumberMax || end <= start)
        this.#report(
          `${path},5,${i}`,
          1,
          `${start} to ${end - 1} is no range of field numbers (1 to ${fieldNumberMax})`,
        );
    });
    if (isEntry) this.#mapEntry(message, path);
    message.nestedType.forEach((nested, i) => {
      this.#message(nested, `${path},3,${i}`, features, inside, false);
    });
    const onlyEnums = message.reservedRange.some(
      ({ start = 0, end = 0 }) => start <= 1 && end > fieldNumberMax,
    );
    message.enumType.forEach((type, i) => {
      this.#enum(type, `${path},4,${i}`, features, onlyEnums);
    });
    message.extension.forEach((field, i) => {
      this.#extension(field, `${path},6,${i}`, features, inside);
    });
  }

  #ranges(message: DescriptorProto, path: string): void {
    const report = (at: string, fault: string) => this.#report(at, undefined, fault);
    const rangesOf = (what: NumberRange['what'], number: number): NumberRange[] =>
      (number === 5 ? message.extensionRange : message.reservedRange).map(({ start = 0, end = 0 }, i) => {
        return { start, end: end - 1, what, path: `${path},${number},${i}` };
      });
    const reserved = rangesOf('reserved range', 9);
    for (const { start, end, path: at } of reserved)
      if (start < 1 || end > fieldNumberMax)
        report(at, `${start} to ${end} is no range of field numbers (1 to ${fieldNumberMax})`);
    checkRanges([...reserved, ...rangesOf('extension range', 5)], report);
    checkReservedNames(message.reservedName, `${path},10`, report);
  }

  #messageSet({ field, extensionRange, name }: DescriptorProto, path: string): void {
    if (this.#file.descriptor.syntax === 'proto3')
      this.#report(path, 1, 'proto3 has no message_set_wire_format');
    else if (field.length > 0)
      this.#report(`${path},2,0`, 1, `the message set ${name} has fields: only extensions may`);
    else if (extensionRange.length === 0)
      this.#report(path, 1, `the message set ${name} leaves no range to extensions`);
  }

  /** A missing value defaults to the enum's first value. */
  #mapEntry(entry: DescriptorProto, path: string): void {
    const type = this.#schema.get(entry.field[1]?.typeName ?? '');
    if (type?.kind === 'enum' && (type.descriptor.value[0]?.number ?? 0) !== 0)
      this.#report(path, 1, `the first value of ${type.fullName} must be 0, since it is the value of a map`);
  }

  #number(number: number, path: string): void {
    if (number < 1 || number > fieldNumberMax)
      this.#report(path, 3, `field number ${number} is not between 1 and ${fieldNumberMax}`);
    else if (number >= 19000 && number <= 19999)
      this.#report(path, 3, 'field numbers 19000 to 19999 belong to protobuf itself');
  }

  /** A map's entry type may be used only by its own map. */
  #entryType(
    { typeName, name = '', label }: FieldDescriptorProto,
    owner: DescriptorProto | undefined,
    path: string,
  ): void {
    const type = this.#schema.messageOf(typeName ?? '');
    if (type?.descriptor.options?.[0] !== 0x38) return;
    const own =
      owner?.nestedType.includes(type.descriptor) === true &&
      label === labels.repeated &&
      type.descriptor.name === mapEntryName(name);
    if (!own) this.#report(path, 6, `${type.fullName} belongs to a map: write map<…> for a map of your own`);
  }

  #field(what: 'field' | 'extension', field: FieldDescriptorProto, path: string, outer: FeatureScope): void {
    const features = outer.inside('FieldOptions', field.options);
    this.#style(what, field.name, path, features);
    this.#options('FieldOptions', field.options, path);
    for (const fault of fieldFaults(this.#schema, this.#file, field, features)) this.#report(path, 1, fault);
    if (field.typeName !== undefined) this.#use(field.typeName, path, 6);
  }

  #extension(field: FieldDescriptorProto, path: string, outer: FeatureScope, scope: string): void {
    const extendee = this.#schema.messageOf(field.extendee ?? '');
    const { number = 0 } = field;
    if (extendee === undefined) return;
    this.#field('extension', field, path, outer);
    this.#entryType(field, undefined, path);
    if (field.jsonName !== jsonNameOf(field.name ?? ''))
      this.#report(path, 10, 'an extension has no json_name: in JSON it goes by its full name');
    this.#use(field.extendee, path, 2);
    if (
      this.#file.descriptor.syntax === 'proto3' &&
      !/^google\.protobuf\.\w+Options$/.test(extendee.fullName)
    )
      this.#report(
        path,
        2,
        `proto3 extends nothing but the options of google.protobuf, not ${extendee.fullName}`,
      );
    else if (
      !extendee.descriptor.extensionRange.some(({ start = 0, end = 0 }) => number >= start && number < end)
    )
      this.#report(path, 3, `${extendee.fullName} leaves no range with ${number} to extensions`);
    else {
      const fault = undeclared(this.#schema, extendee.descriptor, field, join(scope, field.name));
      if (fault !== undefined) this.#report(path, 3, fault);
    }
  }
}

export function checkFile(schema: Schema, file: SchemaFile): void {
  new Checker(schema, file).run();
}
