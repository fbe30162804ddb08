/** Fields and oneofs of one message: types, presence and property names decided. Called by build.ts once all types are declared. */
import type { DescriptorProto, FieldDescriptorProto } from '../descriptor/descriptor.rdma.ts';
import { isScalarName, labels, typeName } from '../descriptor/types.ts';
import type { SchemaFile } from '../link/schema.ts';
import type { OptionTree } from '../options/tree.ts';
import type { Building } from './building.ts';
import { defaultLiteral } from './default.ts';
import { type Features, withFeatures } from './features.ts';
import type { Field, FieldType, Message, Oneof } from './model.ts';
import { propertyName } from './names.ts';
import { bulkThreshold, customOptions } from './options.ts';

/** MessageOptions.map_entry. */
const mapEntryField = 7;

export function isMapEntry(building: Building, message: DescriptorProto): boolean {
  return building.options('MessageOptions', message.options)?.flag(mapEntryField) === true;
}

/** Properties of one object, in which no two may get the same name. */
class Keys {
  private readonly names = new Map<string, string>();

  choose(building: Building, file: SchemaFile, path: string, name: string): string {
    const key = propertyName(name);
    const clash = this.names.get(key);
    if (clash !== undefined)
      building.report(file, path, 1, `${clash} and ${name} both become ${key} in TypeScript`);
    this.names.set(key, name);
    return key;
  }
}

export class FieldBuilder {
  private readonly building: Building;
  private readonly file: SchemaFile;

  constructor(building: Building, file: SchemaFile) {
    this.building = building;
    this.file = file;
  }

  /** Fills in the fields and oneofs of `message`. */
  build(descriptor: DescriptorProto, path: string, message: Message, features: Features): void {
    const { building, file } = this;
    const keys = new Keys();
    const oneofs = this.oneofs(descriptor, path, message.fullName);
    const named = new Set<Oneof>();
    const inOneof = new Map<Oneof, Keys>();
    const numbered = descriptor.field.map((field, i) => ({ field, path: `${path},2,${i}` }));
    for (const { field, path: fieldPath } of numbered.sort(
      (a, b) => (a.field.number ?? 0) - (b.field.number ?? 0),
    )) {
      const chosen =
        field.proto3Optional === true || field.oneofIndex === undefined
          ? undefined
          : oneofs[field.oneofIndex];
      let among = keys;
      if (chosen !== undefined) {
        const { oneof, path: oneofPath, name } = chosen;
        if (!named.has(oneof)) {
          named.add(oneof);
          keys.choose(building, file, oneofPath, name);
          message.oneofs.push(oneof);
          inOneof.set(oneof, new Keys());
        }
        among = inOneof.get(oneof) ?? keys;
      }
      const key = among.choose(building, file, fieldPath, field.name ?? '');
      const result = this.field(field, fieldPath, {
        key,
        parent: message.fullName,
        oneof: chosen?.oneof,
        features,
      });
      if (result === undefined) continue;
      message.fields.push(result);
      chosen?.oneof.fields.push(result);
    }
  }

  private oneofs(descriptor: DescriptorProto, path: string, parent: string) {
    return descriptor.oneofDecl.map(({ name = '', options }, i) => {
      const oneofPath = `${path},8,${i}`;
      const about = this.building.documented(
        this.file,
        oneofPath,
        'OneofOptions',
        this.building.options('OneofOptions', options),
      );
      const oneof: Oneof = { key: propertyName(name), fullName: `${parent}.${name}`, fields: [], ...about };
      return { oneof, path: oneofPath, name };
    });
  }

  /** Undefined when its type is not known, which the linker has reported. */
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
    const { building, file } = this;
    const { name = '', number = 0, label } = descriptor;
    const options = building.options('FieldOptions', descriptor.options);
    const features = withFeatures(outer, 'FieldOptions', options);
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
      const type = value === undefined ? undefined : this.type(value, undefined);
      if (type === undefined || !isScalarName(keyName)) return undefined;
      return {
        ...common,
        type,
        presence: 'map',
        packed: false,
        delimited: false,
        utf8: features.utf8,
        default: undefined,
        mapKey: keyName,
      };
    }
    const type = this.type(descriptor, options);
    if (type === undefined) return undefined;
    const repeated = label === labels.repeated;
    const packable =
      type.kind === 'enum' || (type.kind === 'scalar' && type.scalar !== 'string' && type.scalar !== 'bytes');
    return {
      ...common,
      type,
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

  private type(descriptor: FieldDescriptorProto, options: OptionTree | undefined): FieldType | undefined {
    const name = typeName(descriptor.type) ?? '';
    if (!isScalarName(name)) return this.building.type(this.file, descriptor.typeName);
    const wanted = name.endsWith('64') ? options?.integer(6) : 0;
    return {
      kind: 'scalar',
      scalar: name,
      jstype: wanted === 1 ? 'string' : wanted === 2 ? 'number' : 'bigint',
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
