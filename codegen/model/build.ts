/**
 * From parsed files to the model: first every name is declared, then fields and methods are resolved against them. Collects what is wrong
 * instead of stopping. Called by generate().
 */
import protobuf from 'protobufjs';
import { FileDescriptorProto } from '../descriptor/descriptor.rdma.ts';
import type { Diagnostic } from '../diagnostic.ts';
import { isBundled } from '../source/load.ts';
import { at, type ProtoSource } from '../source/proto-source.ts';
import { Building, documented } from './building.ts';
import { checkEnum, checkMessage } from './check.ts';
import { buildFields } from './fields.ts';
import { methodId } from './method-id.ts';
import type { Enum, File, Message, Method, Service } from './model.ts';
import { descriptorName, Identifiers, methodName } from './names.ts';
import { Symbols } from './symbols.ts';

export interface Model {
  /** Imported files before those that import them. */
  readonly files: readonly File[];
  readonly diagnostics: readonly Diagnostic[];
}

export function buildModel(
  sources: ReadonlyMap<string, ProtoSource>,
  bundledApart: boolean,
  descriptors: ReadonlyMap<string, FileDescriptorProto> = new Map(),
): Model {
  const diagnostics: Diagnostic[] = [];
  const symbols = new Symbols();
  const files = new Map<string, File>();
  const resolveAll: (() => void)[] = [];
  for (const source of sources.values()) {
    const imports = source.declarations.imports.flatMap((entry) => {
      const file = files.get(entry.path.text.slice(1, -1));
      return file === undefined ? [] : [{ file, public: entry.public }];
    });
    const bundled = bundledApart && isBundled(source.path);
    const file: File = {
      path: source.path,
      package: source.package,
      bundled,
      imports,
      descriptor: descriptorName(source.path),
      bytes: FileDescriptorProto.encode(descriptors.get(source.path) ?? {}),
      dependencies: descriptors.get(source.path)?.dependency ?? [],
      messages: [],
      enums: [],
      services: [],
    };
    files.set(source.path, file);
    resolveAll.push(...declareFile(new Building(file, source, symbols, diagnostics)));
  }
  for (const resolve of resolveAll) resolve();
  checkMethodIds([...files.values()], sources, diagnostics);
  return { files: [...files.values()], diagnostics };
}

/** Declares everything in the file; returns what is to be done once all files are declared. */
function declareFile(building: Building): (() => void)[] {
  const { file, source } = building;
  const later: (() => void)[] = [];
  const types: { path: string[]; node: protobuf.Type | protobuf.Enum }[] = [];
  const services: protobuf.Service[] = [];
  const visit = (nodes: readonly protobuf.ReflectionObject[], path: readonly string[]): void => {
    for (const node of nodes) {
      if (node instanceof protobuf.Type || node instanceof protobuf.Enum)
        types.push({ path: [...path, node.name], node });
      if (node instanceof protobuf.Service) services.push(node);
      if (node instanceof protobuf.Type) visit(node.nestedArray, [...path, node.name]);
    }
  };
  const scope = source.package === '' ? source.root : source.root.lookup(source.package.split('.'));
  visit(scope instanceof protobuf.Namespace ? scope.nestedArray : [], []);

  // Top-level names come first: they keep theirs when a nested one would get the same.
  const identifiers = new Identifiers([file.descriptor]);
  const declared = new Map<protobuf.ReflectionObject, string>();
  for (const { path, node } of [...types].sort((a, b) => a.path.length - b.path.length))
    declared.set(node, identifiers.declare(path));
  for (const { path, node } of types) {
    const identifier = declared.get(node) as string;
    const fullName = building.fullName(path.join('.'));
    const place = building.place(node instanceof protobuf.Type ? 'message' : 'enum', path.join('.'));
    const common = { file, fullName, identifier, ...documented(node.comment, node.options) };
    let type: Message | Enum;
    if (node instanceof protobuf.Type) {
      const message: Message = {
        kind: 'message',
        ...common,
        init: identifiers.derive(identifier, 'Init'),
        fields: [],
        oneofs: [],
      };
      type = message;
      file.messages.push(message);
      later.push(() => {
        checkMessage(building, node, path.join('.'));
        buildFields(building, node, path.join('.'), message);
      });
    } else {
      const names = identifiers.derive(identifier, 'Names');
      type = { kind: 'enum', ...common, names, values: enumValues(node) };
      file.enums.push(type);
      checkEnum(building, node, path.join('.'));
    }
    if (!building.symbols.add(type)) {
      const other = building.symbols.get(fullName)?.file.path;
      building.report(place.name, `${fullName} is declared in ${other} too`);
    }
  }
  for (const node of services) {
    const [definition, client, handlers] = (['Definition', 'Client', 'Handlers'] as const).map((suffix) =>
      identifiers.derive(node.name, suffix),
    );
    later.push(() => {
      const service = {
        name: node.name,
        fullName: building.fullName(node.name),
        ...documented(node.comment, node.options),
      };
      file.services.push({
        ...service,
        definition: definition as string,
        client: client as string,
        handlers: handlers as string,
        methods: buildMethods(building, node, service.fullName),
      } satisfies Service);
    });
  }
  return later;
}

function enumValues(node: protobuf.Enum): Enum['values'] {
  return Object.entries(node.values).map(([name, number]) => ({
    name,
    number,
    ...documented(node.comments[name], node.valuesOptions?.[name] as Record<string, unknown> | undefined),
  }));
}

function buildMethods(building: Building, node: protobuf.Service, fullName: string): Method[] {
  const keys = new Map<string, string>();
  return node.methodsArray.flatMap((method) => {
    const place = building.place('method', `${node.name}.${method.name}`);
    const key = methodName(method.name);
    const clash = keys.get(key);
    if (clash !== undefined)
      building.report(place.name, `methods ${clash} and ${method.name} both become ${key} in TypeScript`);
    keys.set(key, method.name);
    const request = messageOf(building, method.requestType, fullName, place.type ?? place.name);
    const response = messageOf(building, method.responseType, fullName, place.response ?? place.name);
    if (request === undefined || response === undefined) return [];
    const requestStream = method.requestStream === true;
    const responseStream = method.responseStream === true;
    const level = method.options?.idempotency_level;
    const path = `${fullName}/${method.name}`;
    return {
      name: method.name,
      key,
      path,
      id: methodId(path),
      request,
      response,
      requestStream,
      responseStream,
      idempotencyLevel: level === 'IDEMPOTENT' || level === 'NO_SIDE_EFFECTS' ? level : undefined,
      ...documented(method.comment, method.options),
    };
  });
}

function messageOf(
  building: Building,
  name: string,
  scope: string,
  token: Parameters<typeof at>[1],
): Message | undefined {
  const type = building.resolve(name, scope, token);
  if (type?.kind === 'enum')
    building.report(token, `${name} is an enum; a method takes and returns messages`);
  return type?.kind === 'message' ? type : undefined;
}

function checkMethodIds(
  files: readonly File[],
  sources: ReadonlyMap<string, ProtoSource>,
  diagnostics: Diagnostic[],
): void {
  const paths = new Map<number, string>();
  for (const file of files) {
    for (const service of file.services) {
      for (const method of service.methods) {
        const other = paths.get(method.id);
        paths.set(method.id, method.path);
        const source = sources.get(file.path);
        const place = source?.declarations.all.find(
          (d) => d.kind === 'method' && d.path === `${service.name}.${method.name}`,
        );
        if (other === undefined || source === undefined || place === undefined) continue;
        diagnostics.push(
          at(
            source.displayPath,
            place.name,
            `${method.path} and ${other} have the same method id ${method.id}: rename one`,
          ),
        );
      }
    }
  }
}
