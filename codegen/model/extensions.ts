/**
 * Builds extension fields. Each becomes a const with a codec of its own, which is the codec of a message with
 * one field. Extensions of the options in google.protobuf are omitted, because their values are in the
 * definitions. build.ts calls it once all types are declared.
 */
import type { DescriptorProto, FieldDescriptorProto } from '../descriptor/descriptor.rdma.ts';
import { join, type SchemaFile } from '../link/schema.ts';
import type { Building } from './building.ts';
import { type Features, withFeatures } from './features.ts';
import { FieldBuilder } from './fields.ts';
import type { Extension, File, Message } from './model.ts';
import type { Identifiers } from './names.ts';

const optionMessages = /^\.google\.protobuf\.(?:\w+Options|FeatureSet)$/;

export class ExtensionBuilder {
  readonly #building: Building;

  constructor(building: Building) {
    this.#building = building;
  }

  build(source: SchemaFile, file: File, features: Features, identifiers: Identifiers): Extension[] {
    const { descriptor } = source;
    const result: Extension[] = [];
    const add = (
      field: FieldDescriptorProto,
      path: string,
      names: readonly string[],
      inherited: Features,
    ): void => {
      if (optionMessages.test(field.extendee ?? '')) return;
      const made = this.#extension(source, file, field, path, names, inherited, identifiers);
      if (made !== undefined) result.push(made);
    };
    const visit = (
      message: DescriptorProto,
      path: string,
      outer: readonly string[],
      outerFeatures: Features,
    ): void => {
      const names = [...outer, message.name ?? ''];
      const inside = withFeatures(
        outerFeatures,
        'MessageOptions',
        this.#building.options('MessageOptions', message.options),
      );
      message.extension.forEach((field, i) => {
        add(field, `${path},6,${i}`, names, inside);
      });
      message.nestedType.forEach((nested, i) => {
        visit(nested, `${path},3,${i}`, names, inside);
      });
    };
    descriptor.extension.forEach((field, i) => {
      add(field, `7,${i}`, [], features);
    });
    descriptor.messageType.forEach((message, i) => {
      visit(message, `4,${i}`, [], features);
    });
    return result;
  }

  #extension(
    source: SchemaFile,
    file: File,
    descriptor: FieldDescriptorProto,
    path: string,
    outer: readonly string[],
    features: Features,
    identifiers: Identifiers,
  ): Extension | undefined {
    const extendee = this.#building.message(source, descriptor.extendee);
    const parent = outer.length === 0 ? file.package : join(file.package, outer.join('.'));
    const fields = new FieldBuilder(this.#building, source);
    const field = fields.field(descriptor, path, { key: 'value', parent, oneof: undefined, features });
    if (extendee === undefined || field === undefined) return undefined;
    const identifier = identifiers.declare([...outer, descriptor.name ?? '']);
    const { comment, deprecated, fullName } = field;
    // An extension always has presence.
    const presence = field.presence === 'repeated' ? 'repeated' : 'optional';
    const message: Message = {
      kind: 'message',
      file,
      fullName,
      identifier: `${identifier}$Value`,
      init: `${identifier}$Init`,
      fields: [{ ...field, presence }],
      oneofs: [],
      keepsUnknown: false,
      reserved: [],
      custom: undefined,
      options: '',
      defaults: '',
      comment: '',
      deprecated: false,
    };
    return { identifier, fullName, extendee, message, comment, deprecated };
  }
}
