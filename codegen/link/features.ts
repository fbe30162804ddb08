/**
 * Features of editions, for the rules of the language. An element has its own setting, or else the setting of
 * the element around it. The checks of a linked file use it.
 */
import type { DescriptorProto } from '../descriptor/descriptor.rdma.ts';
import { decodeOptions, OptionTree } from '../options/tree.ts';
import type { DeclaredKind, Schema, SchemaFile } from './schema.ts';

/** Field numbers of google.protobuf.FeatureSet. */
const featureNumbers = {
  presence: 1,
  enumType: 2,
  repeatedEncoding: 3,
  utf8: 4,
  messageEncoding: 5,
  jsonFormat: 6,
  naming: 7,
  visibility: 8,
} as const;

export type FeatureName = keyof typeof featureNumbers;

export const presences = { explicit: 1, implicit: 2, required: 3 } as const;
export const closed = 2;
export const jsonBestEffort = 2;
const naming2024 = 1;
export const namingLegacy = 2;
export const visibilities = { exportAll: 1, exportTopLevel: 2, localAll: 3, strict: 4 } as const;

/** Field number of `features` in each kind of options. */
const holders: Readonly<Record<string, number>> = {
  FileOptions: 50,
  MessageOptions: 12,
  EnumOptions: 7,
  FieldOptions: 21,
  OneofOptions: 1,
  EnumValueOptions: 2,
  ServiceOptions: 34,
  MethodOptions: 35,
};

const edition2023: Partial<Record<FeatureName, number>> = {
  presence: presences.explicit,
  enumType: 1,
  jsonFormat: 1,
  visibility: visibilities.exportAll,
};
const defaults: Readonly<Record<string, Partial<Record<FeatureName, number>>>> = {
  proto2: { ...edition2023, enumType: closed, jsonFormat: jsonBestEffort },
  proto3: { ...edition2023, presence: presences.implicit },
  editions: edition2023,
};

/** From this edition on, nested types are local to their file by default, and names must follow a style. */
export const edition2024 = 1001;

export class FeatureScope {
  readonly #schema: Schema;
  readonly #file: SchemaFile;
  /** The settings, from the innermost to the outermost. */
  readonly #set: readonly OptionTree[];

  constructor(schema: Schema, file: SchemaFile, set: readonly OptionTree[] = []) {
    this.#schema = schema;
    this.#file = file;
    this.#set = set;
  }

  static ofFile(schema: Schema, file: SchemaFile): FeatureScope {
    return new FeatureScope(schema, file).inside('FileOptions', file.descriptor.options);
  }

  /** Returns the features of an enum, including those of the elements around it. */
  static ofEnum(schema: Schema, { file, fullName, descriptor }: DeclaredKind<'enum'>): FeatureScope {
    const outer: DescriptorProto[] = [];
    for (let at = fullName.lastIndexOf('.'); at > 0; at = fullName.lastIndexOf('.', at - 1)) {
      const found = schema.messageOf(fullName.slice(0, at));
      if (found !== undefined) outer.unshift(found.descriptor);
    }
    let features = FeatureScope.ofFile(schema, file);
    for (const { options } of outer) features = features.inside('MessageOptions', options);
    return features.inside('EnumOptions', descriptor.options);
  }

  /** Returns the features of an element with these options. */
  inside(type: string, options: Uint8Array | undefined): FeatureScope {
    const tree = decodeOptions(this.#schema, type, options)?.tree(holders[type] ?? 0);
    return new FeatureScope(this.#schema, this.#file, tree === undefined ? this.#set : [tree, ...this.#set]);
  }

  get(name: FeatureName): number {
    for (const tree of this.#set) {
      const value = tree.get(featureNumbers[name]);
      if (value !== undefined && !(value instanceof OptionTree)) return Number(value);
    }
    const { syntax = 'proto2', edition = 0 } = this.#file.descriptor;
    if (name === 'visibility' && edition >= edition2024) return visibilities.exportTopLevel;
    if (name === 'naming') return edition >= edition2024 ? naming2024 : namingLegacy;
    return defaults[syntax]?.[name] ?? 0;
  }
}

/** Returns the settings in an element's own options, by feature. A feature without a setting is undefined. */
export function ownFeature(
  schema: Schema,
  type: string,
  options: Uint8Array | undefined,
  name: FeatureName,
): number | undefined {
  const value = decodeOptions(schema, type, options)
    ?.tree(holders[type] ?? 0)
    ?.get(featureNumbers[name]);
  return value === undefined || value instanceof OptionTree ? undefined : Number(value);
}
