/** Declarations as .proto text, out of descriptors: for people to read. Options and extensions are left out. Used by `rdma-rpc describe`. */
import type {
  DescriptorProto,
  EnumDescriptorProto,
  FieldDescriptorProto,
  FileDescriptorProto,
  MethodDescriptorProto,
  ServiceDescriptorProto,
} from '../../codegen/descriptor/descriptor.rdma.ts';
import { labels, typeName } from '../../codegen/descriptor/types.ts';

const plain = (name: string | undefined): string => (name ?? '').replace(/^\./, '');
const indented = (text: string): string => text.replace(/^(?=.)/gm, '  ');
const block = (head: string, parts: readonly string[]): string =>
  parts.length === 0 ? `${head} {}` : `${head} {\n${indented(parts.join('\n'))}\n}`;

function fieldType(field: FieldDescriptorProto): string {
  const name = typeName(field.type);
  return name === undefined || name === 'message' || name === 'enum' || name === 'group'
    ? plain(field.typeName)
    : name;
}

/** The entry message of a map field, which protobuf has in place of the map. */
function entryOf(field: FieldDescriptorProto, message: DescriptorProto): DescriptorProto | undefined {
  if (field.label !== labels.repeated || typeName(field.type) !== 'message') return undefined;
  const camel = (field.name ?? '').replace(/(?:^|_+)([^_])/g, (_, first: string) => first.toUpperCase());
  const entry = message.nestedType.find(({ name }) => name === `${camel}Entry`);
  return entry !== undefined && plain(field.typeName).endsWith(`.${message.name}.${entry.name}`)
    ? entry
    : undefined;
}

function fieldText(field: FieldDescriptorProto, message: DescriptorProto, proto3: boolean): string {
  const entry = entryOf(field, message);
  const [key, value] = entry?.field ?? [];
  if (key !== undefined && value !== undefined) {
    return `map<${fieldType(key)}, ${fieldType(value)}> ${field.name} = ${field.number};`;
  }
  let label = '';
  if (field.label === labels.repeated) label = 'repeated ';
  else if (field.label === labels.required) label = 'required ';
  else if (field.proto3Optional === true || (!proto3 && field.oneofIndex === undefined)) label = 'optional ';
  return `${label}${fieldType(field)} ${field.name} = ${field.number};`;
}

export function messageText(message: DescriptorProto, proto3: boolean): string {
  const oneofs = message.oneofDecl.map(({ name }, index) => {
    const fields = message.field.filter(
      (field) => field.oneofIndex === index && field.proto3Optional !== true,
    );
    return fields.length === 0
      ? []
      : [
          block(
            `oneof ${name}`,
            fields.map((field) => fieldText(field, message, true)),
          ),
        ];
  });
  const entries = new Set(message.field.map((field) => entryOf(field, message)));
  const parts = [
    ...message.nestedType
      .filter((nested) => !entries.has(nested))
      .map((nested) => messageText(nested, proto3)),
    ...message.enumType.map(enumText),
    ...message.field
      .filter((field) => field.oneofIndex === undefined || field.proto3Optional === true)
      .map((field) => fieldText(field, message, proto3)),
    ...oneofs.flat(),
    ...message.extensionRange.map(({ start, end }) => `extensions ${start} to ${(end ?? 1) - 1};`),
  ];
  return block(`message ${message.name}`, parts);
}

export function enumText(declared: EnumDescriptorProto): string {
  const values = declared.value.map(({ name, number = 0 }) => `${name} = ${number};`);
  const aliases = new Set(declared.value.map(({ number = 0 }) => number)).size < values.length;
  return block(`enum ${declared.name}`, aliases ? ['option allow_alias = true;', ...values] : values);
}

function methodText({
  name,
  inputType,
  outputType,
  clientStreaming,
  serverStreaming,
}: MethodDescriptorProto): string {
  const side = (type: string | undefined, stream: boolean | undefined): string =>
    `(${stream === true ? 'stream ' : ''}${plain(type)})`;
  return `rpc ${name}${side(inputType, clientStreaming)} returns ${side(outputType, serverStreaming)};`;
}

export function serviceText(service: ServiceDescriptorProto): string {
  return block(`service ${service.name}`, service.method.map(methodText));
}

/** The declaration of that full name: a service, method, message or enum, or whatever a field or value is declared in. Undefined when the file has none. */
export function declarationText(file: FileDescriptorProto, symbol: string): string | undefined {
  const scope = file.package === undefined || file.package === '' ? '' : `${file.package}.`;
  const proto3 = file.syntax === 'proto3';
  const isIn = (name: string): boolean => symbol === name || symbol.startsWith(`${name}.`);
  const inMessage = (prefix: string, message: DescriptorProto): string | undefined => {
    const name = `${prefix}${message.name}`;
    if (!isIn(name)) return undefined;
    for (const nested of message.nestedType) {
      const text = inMessage(`${name}.`, nested);
      if (text !== undefined) return text;
    }
    const declared = message.enumType.find((each) => isIn(`${name}.${each.name}`));
    return declared === undefined ? messageText(message, proto3) : enumText(declared);
  };
  for (const message of file.messageType) {
    const text = inMessage(scope, message);
    if (text !== undefined) return text;
  }
  for (const service of file.service) {
    const name = `${scope}${service.name}`;
    if (!isIn(name)) continue;
    const method = service.method.find((each) => symbol === `${name}.${each.name}`);
    return method === undefined ? serviceText(service) : methodText(method);
  }
  const declared = file.enumType.find(
    (each) => isIn(`${scope}${each.name}`) || each.value.some(({ name }) => symbol === `${scope}${name}`),
  );
  return declared === undefined ? undefined : enumText(declared);
}
