/**
 * Messages and methods that are only known by the descriptors of a server: codecs that look each field up instead of code that was
 * generated. What a hostile server declares is data here, never code. Used by `rdma-rpc call`.
 */
import {
  DescriptorProto,
  type EnumDescriptorProto,
  type FieldDescriptorProto,
  type FileDescriptorProto,
} from '../../codegen/descriptor/descriptor.rdma.ts';
import { isScalarName, labels, typeName } from '../../codegen/descriptor/types.ts';
import { CodecError } from '../../runtime/codec/error.ts';
import { type AnyExtension, extension } from '../../runtime/codec/extension.ts';
import { jsonNameOf, keyOf } from '../../runtime/codec/fields.ts';
import { messageType, newMap, noBytes } from '../../runtime/codec/message.ts';
import { methodId } from '../../runtime/codec/method-id.ts';
import { noRoom } from '../../runtime/codec/sink.ts';
import type {
  EnumObject,
  FieldEntry,
  MessageType,
  MethodDefinition,
  Scalar,
} from '../../runtime/codec/types.ts';
import { anyTypeName, type Registry } from '../../runtime/codec/wkt/any.ts';
import { decodeMessage } from './dynamic-decode.ts';
import { encodeMessage } from './dynamic-encode.ts';
import { type Features, featuresOf, isDelimited, presenceOf, withFeatures } from './dynamic-features.ts';
import { type AnyMessage, type AnyType, setWire } from './dynamic-wire.ts';

interface Declared {
  readonly message: DescriptorProto;
  readonly features: Features;
}

/** An extension before somebody asks for it. */
interface DeclaredExtension {
  readonly name: string;
  readonly extends: string;
  readonly field: FieldDescriptorProto;
  readonly features: Features;
}

const holder = DescriptorProto.create();

const plain = (name: string | undefined): string => (name ?? '').replace(/^\./, '');

export class DynamicTypes {
  readonly #files: readonly FileDescriptorProto[];
  readonly #messages = new Map<string, Declared>();
  readonly #enums = new Map<string, EnumObject>();
  readonly #types = new Map<string, AnyType>();
  /** By full name, and by what they extend and number. */
  readonly #declaredExtensions = new Map<string, DeclaredExtension>();
  readonly #extensions = new Map<DeclaredExtension, AnyExtension>();
  /** For JSON: what an Any may hold, and the extensions. */
  readonly registry: Registry;

  constructor(files: readonly FileDescriptorProto[]) {
    this.#files = files;
    for (const file of files) {
      const scope = file.package === undefined || file.package === '' ? '' : `${file.package}.`;
      const features = withFeatures(featuresOf(file.syntax), 'FileOptions', file.options);
      for (const message of file.messageType) this.#declare(scope, message, features);
      for (const each of file.extension) this.#declareExtension(scope, each, features);
      for (const each of file.enumType) this.#declareEnum(scope, each);
    }
    const find = (name: string) =>
      this.#messages.has(name) ? (this.message(name) as unknown as MessageType<object>) : undefined;
    this.registry = {
      find,
      extension: (name) => this.#extension(this.#declaredExtensions.get(name)),
      extensionOf: (name, number) => this.#extension(this.#declaredExtensions.get(`${name} ${number}`)),
      unpack: (any) => {
        const name = anyTypeName(any);
        const type = find(name);
        if (type === undefined)
          throw new CodecError('google.protobuf.Any', `the server does not declare ${name}`);
        return { type, message: type.decode(any.value) };
      },
    };
  }

  /** `pkg.Service/Method`; undefined when no file declares it. */
  method(path: string): MethodDefinition<AnyMessage, AnyMessage, AnyMessage, AnyMessage> | undefined {
    const [service, name] = path.split('/');
    for (const file of this.#files) {
      const scope = file.package === undefined || file.package === '' ? '' : `${file.package}.`;
      const found = file.service
        .find((each) => `${scope}${each.name}` === service)
        ?.method.find((each) => each.name === name);
      if (found?.name === undefined) continue;
      return {
        name: found.name,
        fullName: path,
        id: methodId(path),
        input: this.message(plain(found.inputType)),
        requestStream: found.clientStreaming === true,
        output: this.message(plain(found.outputType)),
        responseStream: found.serverStreaming === true,
        options: {},
      };
    }
    return undefined;
  }

  /** By full name. Throws when no file declares it. */
  message(name: string): AnyType {
    let type = this.#types.get(name);
    if (type === undefined) {
      const declared = this.#messages.get(name);
      if (declared === undefined) throw new Error(`the server's descriptors do not declare ${name}`);
      type = this.#typeOf(name, declared);
      this.#types.set(name, type);
    }
    return type;
  }

  #declare(scope: string, message: DescriptorProto, outer: Features): void {
    const name = `${scope}${message.name}`;
    const features = withFeatures(outer, 'MessageOptions', message.options);
    this.#messages.set(name, { message, features });
    for (const nested of message.nestedType) this.#declare(`${name}.`, nested, features);
    for (const each of message.enumType) this.#declareEnum(`${name}.`, each);
    for (const each of message.extension) this.#declareExtension(`${name}.`, each, features);
  }

  #declareExtension(scope: string, field: FieldDescriptorProto, features: Features): void {
    const declared = { name: `${scope}${field.name}`, extends: plain(field.extendee), field, features };
    this.#declaredExtensions.set(declared.name, declared);
    this.#declaredExtensions.set(`${declared.extends} ${field.number}`, declared);
  }

  /** The codec is that of a message with the extension as its only field, as in generated code. */
  #extension(declared: DeclaredExtension | undefined): AnyExtension | undefined {
    if (declared === undefined) return undefined;
    let made = this.#extensions.get(declared);
    if (made === undefined) {
      const { name, field, features } = declared;
      const message = { ...holder, field: [{ ...field, name: 'value', jsonName: 'value' }] };
      const codec = this.#typeOf(name, { message, features });
      made = extension({ name, extends: declared.extends, number: field.number ?? 0 }, codec);
      this.#extensions.set(declared, made);
    }
    return made;
  }

  #declareEnum(scope: string, { name, value }: EnumDescriptorProto): void {
    const numbers = newMap<{ [name: string]: number }>();
    for (const each of value) numbers[each.name ?? ''] = each.number ?? 0;
    this.#enums.set(`${scope}${name}`, numbers);
  }

  #typeOf(name: string, declared: Declared): AnyType {
    const { field: fields, extensionRange } = declared.message;
    const { features } = declared;
    const encode = (value: AnyMessage): Uint8Array => encodeMessage(type, value, 0);
    // A call asks for the bound and then for the bytes of the same message.
    let last: AnyMessage | undefined;
    let encoded = noBytes;
    const type: AnyType = messageType<AnyMessage, AnyMessage>({
      typeName: name,
      create: (init) => Object.assign(newMap<AnyMessage>(), init),
      bound: (value) => {
        last = value;
        encoded = encode(value);
        return encoded.length;
      },
      encodeTo: (value, sink, at, limit = sink.bytes.length) => {
        const content = value === last ? encoded : encode(value);
        if (at + content.length > limit) return noRoom(sink, at);
        sink.bytes.set(content, at);
        return at + content.length;
      },
      decodeFrom: (source, at, end, depth = 0, into = newMap()) =>
        decodeMessage(type, source, at, end, depth, into),
      fields: () => fields.map((field) => this.#entry(field, name, declared)),
    });
    const delimited = fields.filter(
      (field) => isDelimited(field, features) && this.#mapEntry(field) === undefined,
    );
    setWire(type, {
      numbers: fields.map(({ number }) => number ?? 0),
      delimited: new Set(delimited.map(({ number }) => number ?? 0)),
      keepsUnknown: extensionRange.length > 0,
    });
    return type;
  }

  #entry(field: FieldDescriptorProto, scope: string, { message, features }: Declared): FieldEntry {
    const name = field.name ?? '';
    // Names are unique in a message; what generated code calls its fields need not be. Only JSON of well-known types goes by the latter.
    const propertyOf = scope.startsWith('google.protobuf.') ? keyOf : (own: string) => own;
    const apart = { key: propertyOf(name), jsonName: field.jsonName ?? jsonNameOf(name) };
    const map = this.#mapEntry(field);
    if (map !== undefined) {
      const [key, value] = map.field;
      return [name, this.#valueType(value!), 'map', typeName(key?.type) as Scalar, apart];
    }
    const type = this.#valueType(field);
    const oneof = field.oneofIndex === undefined ? undefined : message.oneofDecl[field.oneofIndex]?.name;
    if (oneof !== undefined && field.proto3Optional !== true)
      return [name, type, 'oneof', propertyOf(oneof), apart];
    return [name, type, presenceOf(field, features), undefined, apart];
  }

  /** Maps are lists of entries on the wire, and in descriptors. */
  #mapEntry(field: FieldDescriptorProto): DescriptorProto | undefined {
    if (field.label !== labels.repeated || typeName(field.type) !== 'message') return undefined;
    const entry = this.#messages.get(plain(field.typeName))?.message;
    const camel = (field.name ?? '').replace(/(?:^|_+)([^_])/g, (_, first: string) => first.toUpperCase());
    const [key, value] = entry?.field ?? [];
    return entry?.name === `${camel}Entry` && key?.number === 1 && value?.number === 2 ? entry : undefined;
  }

  #valueType(field: FieldDescriptorProto): FieldEntry[1] {
    const name = typeName(field.type);
    if (name !== undefined && isScalarName(name)) return name;
    if (name === 'enum') return this.#enums.get(plain(field.typeName)) ?? {};
    return this.message(plain(field.typeName));
  }
}
