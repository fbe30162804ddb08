/**
 * Builds the fields and oneofs of one message: decides types, presence and property names. build.ts calls it
 * once all types are declared.
 */
import type { DescriptorProto, FieldDescriptorProto } from '../descriptor/descriptor.rdma.ts';
import { isScalarName, labels, typeName } from '../descriptor/types.ts';
import type { SchemaFile } from '../link/schema.ts';
import type { OptionTree } from '../options/tree.ts';
import type { Building } from './building.ts';
import { defaultLiteral, defaultProblem } from './default.ts';
import { type Features, withFeatures } from './features.ts';
import type { Field, FieldType, Message, Oneof } from './model.ts';
import { keysFor, propertyName } from './names.ts';
import { bulkThreshold, customOptions, typedArray } from './options.ts';

/** The field number of MessageOptions.map_entry. */
const mapEntryField = 7;

export function isMapEntry(building: Building, message: DescriptorProto): boolean {
  return building.options('MessageOptions', message.options)?.flag(mapEntryField) === true;
}

/**
 * JSON names must be unique. If several fields have the same JSON name, which only older syntaxes allow, all
 * but one of them use their .proto names.
 */
function distinctJsonNames(fields: readonly Field[]): Field[] {
  const owners = new Map<string, Field>();
  for (const field of fields)
    if (field.name === field.jsonName || !owners.has(field.jsonName)) owners.set(field.jsonName, field);
  return fields.map((field) =>
    owners.get(field.jsonName) === field ? field : { ...field, jsonName: field.name },
  );
}

export class FieldBuilder {
  readonly #building: Building;
  readonly #file: SchemaFile;

  constructor(building: Building, file: SchemaFile) {
    this.#building = building;
    this.#file = file;
  }

  /** Fills in the fields and oneofs of `message`. */
  build(descriptor: DescriptorProto, path: string, message: Message, features: Features): void {
    const oneofs = this.#oneofs(descriptor, path, message.fullName);
    const named = new Set<Oneof>();
    const numbered = descriptor.field
      .map((field, i) => {
        const oneof = field.proto3Optional === true ? undefined : oneofs[field.oneofIndex ?? -1];
        return { field, path: `${path},2,${i}`, oneof };
      })
      .sort((a, b) => (a.field.number ?? 0) - (b.field.number ?? 0));
    const nameOf = ({ field: { name = '' }, oneof }: (typeof numbered)[number]) => oneof?.name ?? name;
    const keys = keysFor([...new Set(numbered.map(nameOf))], propertyName);
    const cases = new Map(
      oneofs.map((oneof) => {
        const inside = numbered.filter((each) => each.oneof === oneof);
        return [
          oneof,
          keysFor(
            inside.map(({ field: { name = '' } }) => name),
            propertyName,
          ),
        ] as const;
      }),
    );
    const fields: Field[] = [];
    for (const each of numbered) {
      const { field, oneof, path: fieldPath } = each;
      const key = keys.get(nameOf(each)) ?? '';
      const group = oneof?.oneof;
      if (group !== undefined && !named.has(group)) {
        named.add(group);
        group.key = key;
        message.oneofs.push(group);
      }
      const result = this.field(field, fieldPath, {
        key: oneof === undefined ? key : (cases.get(oneof)?.get(field.name ?? '') ?? ''),
        parent: message.fullName,
        oneof: group,
        features,
      });
      if (result !== undefined) fields.push(result);
    }
    message.fields.push(...distinctJsonNames(fields));
    for (const field of message.fields) field.oneof?.fields.push(field);
  }

  #oneofs(descriptor: DescriptorProto, path: string, parent: string) {
    return descriptor.oneofDecl.map(({ name = '', options }, i) => {
      const oneofPath = `${path},8,${i}`;
      const about = this.#building.documented(
        this.#file,
        oneofPath,
        'OneofOptions',
        this.#building.options('OneofOptions', options),
      );
      const oneof: Oneof = { key: '', fullName: `${parent}.${name}`, fields: [], ...about };
      return { oneof, path: oneofPath, name };
    });
  }

  /** Returns undefined when the field's type is unknown, which the linker has reported. */
  field(
    descriptor: FieldDescriptorProto,
    path: string,
    {
      key,
      parent,
      oneof,
      features: outer,
    }: { key: string; parent: string; oneof: Oneof | undefined; features: Features },
  ): Field | undefined {
    const building = this.#building;
    const file = this.#file;
    const { name = '', number = 0, label } = descriptor;
    const options = building.options('FieldOptions', descriptor.options);
    const features = withFeatures(outer, 'FieldOptions', options);
    const array = (type: FieldType | undefined) =>
      typedArray(
        options,
        type?.kind === 'scalar' && type.scalar === 'bytes',
        descriptor.defaultValue !== undefined,
        (message) => building.report(file, path, 1, message),
      );
    const common = {
      name,
      key,
      jsonName: descriptor.jsonName ?? name,
      fullName: parent === '' ? name : `${parent}.${name}`,
      number,
      oneof,
      bulkThreshold: bulkThreshold(options),
      custom: customOptions(building.schema, options),
      ...building.documented(file, path, 'FieldOptions', options),
    };
    const entry =
      typeName(descriptor.type) === 'message' ? building.declared(descriptor.typeName) : undefined;
    if (entry !== undefined && isMapEntry(building, entry.descriptor)) {
      const [mapKey, value] = entry.descriptor.field;
      const keyName = typeName(mapKey?.type) ?? '';
      const type = value === undefined ? undefined : this.#type(value, undefined);
      if (type === undefined || !isScalarName(keyName)) return undefined;
      return {
        ...common,
        type,
        array: array(type),
        presence: 'map',
        packed: false,
        delimited: false,
        utf8: features.utf8,
        default: undefined,
        mapKey: keyName,
      };
    }
    const type = this.#type(descriptor, options);
    if (type === undefined) return undefined;
    const why = defaultProblem(descriptor, type);
    if (why !== '') building.report(file, path, 7, why);
    const repeated = label === labels.repeated;
    const packable =
      type.kind === 'enum' || (type.kind === 'scalar' && type.scalar !== 'string' && type.scalar !== 'bytes');
    return {
      ...common,
      type,
      array: array(type),
      presence: repeated
        ? 'repeated'
        : oneof !== undefined
          ? 'oneof'
          : presenceOf(descriptor, type, features),
      packed: repeated && packable && (options?.values.has(2) === true ? options.flag(2) : features.packed),
      delimited: type.kind === 'message' && (typeName(descriptor.type) === 'group' || features.delimited),
      utf8: features.utf8,
      default: defaultLiteral(descriptor, type),
      mapKey: undefined,
    };
  }

  #type(descriptor: FieldDescriptorProto, options: OptionTree | undefined): FieldType | undefined {
    const name = typeName(descriptor.type) ?? '';
    if (!isScalarName(name)) return this.#building.type(this.#file, descriptor.typeName);
    const wanted = name.endsWith('64') ? options?.integer(6) : 0;
    return {
      kind: 'scalar',
      scalar: name,
      jstype: wanted === 1 ? 'string' : wanted === 2 ? 'number' : this.#building.int64,
    };
  }
}

function presenceOf(
  descriptor: FieldDescriptorProto,
  type: FieldType,
  features: Features,
): Field['presence'] {
  if (descriptor.label === labels.required || features.presence === 'required') return 'required';
  if (type.kind === 'message' || descriptor.proto3Optional === true) return 'optional';
  return features.presence === 'explicit' ? 'optional' : 'implicit';
}
