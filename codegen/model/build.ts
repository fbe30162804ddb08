/**
 * Builds the model from linked descriptors. First every name is declared; then fields and methods are made.
 * It reports declarations that are valid in protobuf but impossible in TypeScript. generate() calls it.
 */
import {
  type DescriptorProto,
  type EnumDescriptorProto,
  FileDescriptorProto,
} from '../descriptor/descriptor.rdma.ts';
import { closed, FeatureScope } from '../link/features.ts';
import { join, type Schema, type SchemaFile } from '../link/schema.ts';
import { isInRuntime } from '../source/files.ts';
import { Building } from './building.ts';
import { ExtensionBuilder } from './extensions.ts';
import { type Features, syntaxFeatures, withFeatures } from './features.ts';
import { FieldBuilder, isMapEntry } from './fields.ts';
import type { Enum, File, Int64, Message } from './model.ts';
import { descriptorName, Identifiers } from './names.ts';
import { customOptions } from './options.ts';
import { ServiceBuilder } from './services.ts';

export interface ModelOptions {
  /** Whether well-known types are part of the runtime. */
  readonly runtimeApart: boolean;
  readonly unknownFields: 'keep' | 'drop';
  /** Default `bigint`. */
  readonly int64?: Int64 | undefined;
}

/** A message or enum as declared, with the names of its surroundings. */
type Node = { readonly names: readonly string[]; readonly path: string } & (
  | { readonly message: DescriptorProto; readonly features: Features }
  | { readonly enum: EnumDescriptorProto }
);

class ModelBuilder {
  readonly #building: Building;
  readonly #options: ModelOptions;
  readonly #services: ServiceBuilder;
  readonly #extensions: ExtensionBuilder;
  readonly #later: (() => void)[] = [];

  constructor(schema: Schema, options: ModelOptions) {
    this.#building = new Building(schema, options.int64 ?? 'bigint');
    this.#options = options;
    this.#services = new ServiceBuilder(this.#building);
    this.#extensions = new ExtensionBuilder(this.#building);
  }

  run(): File[] {
    const building = this.#building;
    for (const file of building.schema.files.values()) this.#declareFile(file);
    for (const make of this.#later) make();
    return [...building.files.values()];
  }

  #declareFile(source: SchemaFile): void {
    const building = this.#building;
    const { descriptor } = source;
    const byPath = (path: string): File[] => {
      const found = building.schema.files.get(path);
      const file = found === undefined ? undefined : building.files.get(found);
      return file === undefined ? [] : [file];
    };
    const file: File = {
      path: source.path,
      package: descriptor.package ?? '',
      bundled: this.#options.runtimeApart && isInRuntime(source.path),
      uses: new Set(),
      descriptor: descriptorName(source.path),
      // The encoding is computed when it is used, because a file with errors may have no encoding.
      get bytes() {
        return FileDescriptorProto.encode({ ...descriptor, sourceCodeInfo: undefined });
      },
      dependencies: descriptor.dependency.flatMap(byPath),
      publicImports: descriptor.publicDependency.flatMap((i) => byPath(descriptor.dependency[i] ?? '')),
      messages: [],
      enums: [],
      services: [],
      extensions: [],
    };
    for (const each of file.publicImports) file.uses.add(each);
    building.files.set(source, file);
    const features = withFeatures(
      syntaxFeatures(descriptor.syntax),
      'FileOptions',
      building.options('FileOptions', descriptor.options),
    );
    const nodes: Node[] = [];
    descriptor.messageType.forEach((each, i) => {
      this.#visit(nodes, each, `4,${i}`, [], features);
    });
    descriptor.enumType.forEach((each, i) => {
      nodes.push({ enum: each, path: `5,${i}`, names: [each.name ?? ''] });
    });
    // Top-level names come first, so that they keep their names when a nested element would get the same
    // name.
    const identifiers = new Identifiers([file.descriptor]);
    const declared = new Map<Node, string>();
    for (const node of [...nodes].sort((a, b) => a.names.length - b.names.length))
      declared.set(node, identifiers.declare(node.names));
    for (const node of nodes) this.#declareType(source, file, node, declared.get(node) ?? '', identifiers);
    descriptor.service.forEach((each, i) => {
      const make = this.#services.declare(source, each, `6,${i}`, identifiers);
      this.#later.push(() => file.services.push(make()));
    });
    this.#later.push(() => {
      file.extensions.push(...this.#extensions.build(source, file, features, identifiers));
    });
  }

  #visit(
    nodes: Node[],
    message: DescriptorProto,
    path: string,
    outer: readonly string[],
    outerFeatures: Features,
  ): void {
    if (isMapEntry(this.#building, message)) return;
    const names = [...outer, message.name ?? ''];
    const features = withFeatures(
      outerFeatures,
      'MessageOptions',
      this.#building.options('MessageOptions', message.options),
    );
    nodes.push({ message, path, names, features });
    message.nestedType.forEach((each, i) => {
      this.#visit(nodes, each, `${path},3,${i}`, names, features);
    });
    message.enumType.forEach((each, i) => {
      nodes.push({ enum: each, path: `${path},4,${i}`, names: [...names, each.name ?? ''] });
    });
  }

  #declareType(
    source: SchemaFile,
    file: File,
    node: Node,
    identifier: string,
    identifiers: Identifiers,
  ): void {
    const building = this.#building;
    const { path, names } = node;
    const fullName = join(file.package, names.join('.'));
    if ('enum' in node) {
      const type = this.#enum(source, node.enum, path, {
        file,
        fullName,
        identifier,
        names: identifiers.derive(identifier, 'Names'),
      });
      file.enums.push(type);
      building.types.set(fullName, type);
      return;
    }
    const { message: descriptor, features } = node;
    const options = building.options('MessageOptions', descriptor.options);
    const message: Message = {
      kind: 'message',
      file,
      fullName,
      identifier,
      init: identifiers.derive(identifier, 'Init'),
      fields: [],
      oneofs: [],
      keepsUnknown: descriptor.extensionRange.length > 0 || this.#options.unknownFields === 'keep',
      reserved: descriptor.reservedName,
      custom: customOptions(building.schema, options),
      options: '',
      defaults: '',
      ...building.documented(source, path, 'MessageOptions', options),
    };
    file.messages.push(message);
    building.types.set(fullName, message);
    this.#later.push(() => {
      new FieldBuilder(building, source).build(descriptor, path, message, features);
      const derive = (suffix: string, wanted: boolean): string =>
        wanted ? identifiers.derive(identifier, suffix) : '';
      message.options = derive(
        'Options',
        message.custom !== undefined || message.fields.some(({ custom }) => custom !== undefined),
      );
      message.defaults = derive(
        'Defaults',
        message.fields.some((field) => field.default !== undefined),
      );
    });
  }

  #enum(
    source: SchemaFile,
    descriptor: EnumDescriptorProto,
    path: string,
    common: Pick<Enum, 'file' | 'fullName' | 'identifier' | 'names'>,
  ): Enum {
    const building = this.#building;
    const declared = building.schema.get(common.fullName);
    const isClosed =
      declared?.kind === 'enum' && FeatureScope.ofEnum(building.schema, declared).get('enumType') === closed;
    const options = building.options('EnumOptions', descriptor.options);
    const values = descriptor.value.map(({ name = '', number = 0, options: bytes }, i) => ({
      name,
      number,
      ...building.documented(
        source,
        `${path},2,${i}`,
        'EnumValueOptions',
        building.options('EnumValueOptions', bytes),
      ),
    }));
    return {
      kind: 'enum',
      ...common,
      closed: isClosed,
      values,
      ...building.documented(source, path, 'EnumOptions', options),
    };
  }
}

/**
 * Returns all files of the schema, imported files first. `uses` and `bundled` of each file say whether it
 * needs output.
 */
export function buildModel(schema: Schema, options: ModelOptions): File[] {
  return new ModelBuilder(schema, options).run();
}
