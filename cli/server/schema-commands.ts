/** `rdma-rpc list` and `rdma-rpc describe`: what a server has, by reflection. */
import type { Command } from '#commander';
import { type ConnectionFlags, printable, withServer, withTimeout } from './connection.ts';

/** `pkg.Service/Method` is how methods are written elsewhere. */
const symbolOf = (name: string): string => name.replace('/', '.');

export function addListCommand(program: Command): void {
  withTimeout(
    program
      .command('list')
      .description('list the services of a server, or the methods of one; it must offer reflection')
      .argument('<address>', 'host:port or unix:/path')
      .argument('[service]', 'full name of a service'),
  ).action((address: string, service: string | undefined, flags: ConnectionFlags) =>
    withServer(address, flags, async (channel) => {
      const { serviceNames } = await import('./remote-schema.ts');
      const { filesIfAny, methodsOf, suggestionOrList } = await import('./suggest.ts');
      if (service === undefined) {
        for (const name of await serviceNames(channel)) console.log(printable(name));
        return 0;
      }
      const methods = methodsOf((await filesIfAny(channel, service)) ?? [], service);
      if (methods === undefined) {
        const meant = suggestionOrList(service, await serviceNames(channel));
        throw new Error(`${service} is no service${meant}`);
      }
      for (const name of methods) console.log(printable(`${service}/${name}`));
      return 0;
    }),
  );
}

export function addDescribeCommand(program: Command): void {
  withTimeout(
    program
      .command('describe')
      .description(
        'print the declaration of a service, method, message or enum; the server must offer reflection',
      )
      .argument('<address>', 'host:port or unix:/path')
      .argument('<name>', 'full name, such as greeter.v1.Greeter or greeter.v1.Greeter/SayHello'),
  ).action((address: string, name: string, flags: ConnectionFlags) =>
    withServer(address, flags, async (channel) => {
      const { declarationText } = await import('./proto-text.ts');
      const { declaredNames, filesIfAny, suggestionOrList } = await import('./suggest.ts');
      const files = await filesIfAny(channel, symbolOf(name));
      if (files === undefined) {
        const meant = suggestionOrList(symbolOf(name), await declaredNames(channel));
        throw new Error(`the server declares no ${name}${meant}`);
      }
      const [file] = files;
      const text = file && declarationText(file, symbolOf(name));
      if (text === undefined)
        throw new Error(`${name} is declared in ${file?.name}, in no way that can be shown`);
      console.log(printable(`// ${file?.name}\n${text}`));
      return 0;
    }),
  );
}
