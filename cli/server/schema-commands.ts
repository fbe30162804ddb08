/**
 * `rdma-rpc list` and `rdma-rpc describe`: show the declarations of a server, by reflection or from files.
 */
import type { Command } from '#commander';
import { jsonText, printable, printableLine } from '../output.ts';
import type { Schema } from './schema/schema.ts';
import { type DeclarationFlags, withSchema, withSchemaFlags } from './schema-flags.ts';

/** Methods are usually written `pkg.Service/Method`. */
const symbolOf = (name: string): string => name.replace('/', '.');

export function addListCommand(program: Command): void {
  withSchemaFlags(
    program
      .command('list')
      .description('list the services of a server, or the methods of a service; by reflection or from files')
      .argument('[address]', 'host:port or unix:/path; left out with --proto and --protoset')
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
        'print the declaration of a service, method, message or enum as .proto text; by reflection, or by files',
      )
      .argument('[address]', 'host:port or unix:/path; left out with --proto and --protoset')
      .argument(
        '[name]',
        'full name, such as greeter.v1.Greeter or greeter.v1.Greeter/SayHello; none: all services',
      ),
  ).action((address: string | undefined, name: string | undefined, flags: DeclarationFlags) =>
    withSchema(given(address, name), flags, async (schema, [symbol]) => {
      const names = symbol === undefined ? await schema.services() : [symbol];
      const shown: object[] = [];
      for (const each of names) shown.push(await describe(schema, each, flags));
      if (flags.json === true) console.log(jsonText({ declarations: shown }, 2));
    }),
  );
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

async function describe(schema: Schema, name: string, { json }: DeclarationFlags): Promise<object> {
  const symbol = symbolOf(name);
  const registry = await schema.declaring(symbol);
  const { lookUp } = await import('./schema/registry.ts');
  const found = registry && lookUp(registry, symbol);
  if (registry === undefined || found === undefined) {
    const { declaredNames, suggestionOrList } = await import('./schema/suggest.ts');
    const verb = schema.owner.endsWith('s') ? 'declare' : 'declares';
    const meant = suggestionOrList(symbol, await declaredNames(schema));
    throw new Error(`${schema.owner} ${verb} no ${name}${meant}`);
  }
  const { declarationText } = await import('./schema/declaration.ts');
  const file = (found.kind === 'rpc' ? found.parent : found).file.proto.name;
  const declaration = declarationText(found, registry);
  if (json !== true) console.log(printable(`// ${file}\n${declaration}`));
  const kind = found.kind === 'rpc' ? 'method' : found.kind;
  const fullName = found.kind === 'rpc' ? `${found.parent.typeName}/${found.name}` : found.typeName;
  return { name: fullName, kind, file, declaration };
}
