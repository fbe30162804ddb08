/**
 * `rdma-rpc list` and `rdma-rpc describe`: show the declarations of a server, by reflection or from files.
 */
import type { Command } from '#commander';
import type { FileRegistry } from '#protobuf';
import { jsonText, printable, printableLine } from '../output.ts';
import type { Declared } from './schema/registry.ts';
import type { Schema } from './schema/schema.ts';
import { type DeclarationFlags, withSchema, withSchemaFlags } from './schema-flags.ts';

/** Methods are usually written `pkg.Service/Method`. */
const symbolOf = (name: string): string => name.replace('/', '.');

export function addListCommand(program: Command): void {
  withSchemaFlags(
    program
      .command('list')
      .description(
        'list the services of a server, or the methods of a service; asks the server (reflection) or reads files',
      )
      .argument('[address]', 'host:port or unix:/path; may be left out with --proto or --protoset')
      .argument('[service]', 'full name of a service'),
  ).action((address: string | undefined, service: string | undefined, flags: DeclarationFlags) =>
    withSchema(given(address, service), flags, (schema, [name]) => list(schema, name, flags)),
  );
}

export function addDescribeCommand(program: Command): void {
  withSchemaFlags(
    program
      .command('describe')
      .description(
        'print the declaration of a service, method, message or enum as .proto text; asks the server (reflection) or reads files',
      )
      .argument('[address]', 'host:port or unix:/path; may be left out with --proto or --protoset')
      .argument(
        '[name]',
        'full name, such as greeter.v1.Greeter or greeter.v1.Greeter/SayHello; default: all services',
      )
      .option(
        '--with-types',
        'also print the messages and enums that the declaration uses, if they are in the same file',
      ),
  ).action((address: string | undefined, name: string | undefined, flags: DescribeFlags) =>
    withSchema(given(address, name), flags, async (schema, [symbol]) => {
      const names = symbol === undefined ? await schema.services() : [symbol];
      const shown: Described[] = [];
      for (const each of names) {
        const found = await describe(schema, each);
        shown.push(found, ...(flags.withTypes === true ? await typesOf(found) : []));
      }
      if (flags.json !== true) console.log(printable(await protoText(shown)));
      else console.log(jsonText({ declarations: await Promise.all(shown.map(described)) }, 2));
    }),
  );
}

interface DescribeFlags extends DeclarationFlags {
  readonly withTypes?: true;
}

const given = (...words: (string | undefined)[]): string[] => words.filter((word) => word !== undefined);

async function list(schema: Schema, service: string | undefined, { json }: DeclarationFlags): Promise<void> {
  const names = await schema.services();
  if (service === undefined && json !== true) {
    for (const name of names) console.log(printableLine(name));
    return;
  }
  const services: object[] = [];
  for (const name of service === undefined ? names : [service]) {
    const found = (await schema.declaring(name))?.getService(name);
    if (found === undefined) {
      const { suggestionOrList } = await import('./schema/suggest.ts');
      throw new Error(`${name} is not a service${suggestionOrList(name, names)}`);
    }
    const methods = found.methods.map((method) => ({
      name: `${name}/${method.name}`,
      request: method.input.typeName,
      requestStream: method.proto.clientStreaming,
      response: method.output.typeName,
      responseStream: method.proto.serverStreaming,
    }));
    services.push({ name, methods });
    if (json !== true) for (const method of methods) console.log(printableLine(method.name));
  }
  if (json === true) console.log(jsonText({ services }, 2));
}

/** A requested declaration as text, and its origin. */
interface Described {
  readonly declared: Declared;
  readonly registry: FileRegistry;
  readonly declaration: string;
}

async function describe(schema: Schema, name: string): Promise<Described> {
  const symbol = symbolOf(name);
  const registry = await schema.declaring(symbol);
  const { lookUp } = await import('./schema/registry.ts');
  const declared = registry && lookUp(registry, symbol);
  if (registry === undefined || declared === undefined) {
    const { declaredNames, suggestionOrList } = await import('./schema/suggest.ts');
    const verb = schema.owner.endsWith('s') ? 'declare' : 'declares';
    const meant = suggestionOrList(symbol, await declaredNames(schema));
    throw new Error(`${schema.owner} ${verb} no ${name}${meant}`);
  }
  const { declarationText } = await import('./schema/declaration.ts');
  return { declared, registry, declaration: declarationText(declared, registry) };
}

async function typesOf({ declared, registry }: Described): Promise<Described[]> {
  const [{ usedTypes }, { declarationText }] = await Promise.all([
    import('./schema/used-types.ts'),
    import('./schema/declaration.ts'),
  ]);
  return usedTypes(declared).map((each) => ({
    declared: each,
    registry,
    declaration: declarationText(each, registry),
  }));
}

/** Returns the form that docs/schemas/describe.schema.json describes. */
async function described({ declared, registry, declaration }: Described): Promise<object> {
  const { fileOf, headText, outerOf } = await import('./schema/declaration-file.ts');
  const file = fileOf(declared);
  const kind = declared.kind === 'rpc' ? 'method' : declared.kind;
  const name = declared.kind === 'rpc' ? `${declared.parent.typeName}/${declared.name}` : declared.typeName;
  const head = outerOf(declared) === undefined ? headText(file, registry, declaration) : '';
  return { name, kind, file: file.proto.name, head, declaration };
}

/** Returns .proto files. The declarations of one file are printed together, below its package and imports. */
async function protoText(all: readonly Described[]): Promise<string> {
  const { fileOf, headText, outerOf } = await import('./schema/declaration-file.ts');
  const places = new Map<string, Described[]>();
  // Several services may use one type.
  const once = new Map(all.map((each) => [each.declared, each])).values();
  for (const each of once) {
    const outer = outerOf(each.declared);
    const { name } = fileOf(each.declared).proto;
    const place = outer === undefined ? name : `${name}, in ${outer}`;
    places.set(place, [...(places.get(place) ?? []), each]);
  }
  return [...places]
    .map(([place, [first, ...others]]) => {
      const { declared, registry } = first!;
      const text = [first!, ...others].map(({ declaration }) => declaration).join('\n\n');
      const head = outerOf(declared) === undefined ? `${headText(fileOf(declared), registry, text)}\n\n` : '';
      return `// ${place}\n${head}${text}`;
    })
    .join('\n\n');
}
