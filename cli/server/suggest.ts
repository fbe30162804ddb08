/** What a name that a server does not have may have meant. Used by the commands that take names. */
import type { FileDescriptorProto } from '../../codegen/descriptor/descriptor.rdma.ts';
import { suggestion } from '../../codegen/diagnostic.ts';
import type { Channel } from '../../runtime/client/channel-type.ts';
import { RpcError } from '../../runtime/core/rpc-error.ts';
import { Status } from '../../runtime/core/status.ts';
import { filesOf, serviceNames } from './remote-schema.ts';

const listedMax = 8;
/** Services that are looked into for names of messages. */
const servicesMax = 50;

const lastOf = (name: string): string => name.slice(name.lastIndexOf('.') + 1);

/** `; did you mean X?`; where nothing is like the name, what there is. A name without its package, or with another one, is like the whole one. */
export function suggestionOrList(unknown: string, candidates: readonly string[]): string {
  const meant = likely(unknown, candidates);
  if (meant !== '') return meant;
  if (candidates.length === 0) return '';
  const rest = candidates.length > listedMax ? ', …' : '';
  return `; there is ${candidates.slice(0, listedMax).join(', ')}${rest}`;
}

function likely(unknown: string, candidates: readonly string[]): string {
  const last = lastOf(unknown).toLowerCase();
  const sameLast = candidates.filter((each) => lastOf(each).toLowerCase() === last);
  const whole = suggestion(unknown, candidates);
  if (whole !== '' || sameLast.length === 0) {
    if (whole !== '' || unknown.includes('.')) return whole;
    // The package is missing, and a letter is wrong too.
    const short = suggestion(unknown, candidates.map(lastOf));
    const meant = candidates.find((each) => short === `; did you mean ${lastOf(each)}?`);
    return meant === undefined ? '' : `; did you mean ${meant}?`;
  }
  return `; did you mean ${sameLast[0]}?`;
}

/** The files of a symbol; undefined when the server does not have it. */
export async function filesIfAny(
  channel: Channel,
  symbol: string,
): Promise<FileDescriptorProto[] | undefined> {
  try {
    return await filesOf(channel, symbol);
  } catch (error) {
    if (error instanceof RpcError && error.code === Status.NOT_FOUND) return undefined;
    throw error;
  }
}

/** `package.` of a file, empty for none. */
const scopeOf = ({ package: name = '' }: FileDescriptorProto): string => (name === '' ? '' : `${name}.`);

/** Methods of a service; undefined when none of the files has the service. */
export function methodsOf(files: readonly FileDescriptorProto[], service: string): string[] | undefined {
  for (const file of files) {
    const found = file.service.find(({ name }) => `${scopeOf(file)}${name}` === service);
    if (found !== undefined) return found.method.map(({ name = '' }) => name);
  }
  return undefined;
}

/** The files that a call of `method` needs. Throws an Error that says which part of the name is wrong, and what was meant. */
export async function filesOfMethod(channel: Channel, method: string): Promise<FileDescriptorProto[]> {
  const slash = method.indexOf('/');
  const files = await filesIfAny(channel, method.replace('/', '.'));
  if (files !== undefined && slash > 0) return files;
  const dot = method.lastIndexOf('.');
  if (slash < 0) {
    const whole = files && methodsOf(files, method);
    if (whole !== undefined)
      throw new Error(
        `${method} is a service; give Service/Method${suggestionOrList(
          '',
          whole.map((name) => `${method}/${name}`),
        )}`,
      );
    if (files !== undefined && methodsOf(files, method.slice(0, dot))?.includes(method.slice(dot + 1)))
      throw new Error(
        `${method} is no method; did you mean ${method.slice(0, dot)}/${method.slice(dot + 1)}?`,
      );
    const names = (await serviceNames(channel)).map((name) => `${name}/…`);
    throw new Error(`${method} is no method; give Service/Method${suggestionOrList('', names)}`);
  }
  const service = method.slice(0, slash);
  const name = method.slice(slash + 1);
  const services = await serviceNames(channel);
  const known = await filesIfAny(channel, service);
  const methods = known && methodsOf(known, service);
  if (methods === undefined)
    throw new Error(`the server has no service ${service}${suggestionOrList(service, services)}`);
  throw new Error(`${service} has no method ${name}${suggestionOrList(name, methods)}`);
}

/** Names that a server declares: services, their methods, and the messages and enums of their files. */
export async function declaredNames(channel: Channel): Promise<string[]> {
  const names = new Set<string>();
  for (const service of (await serviceNames(channel)).slice(0, servicesMax)) {
    names.add(service);
    const files = (await filesIfAny(channel, service)) ?? [];
    for (const method of methodsOf(files, service) ?? []) names.add(`${service}.${method}`);
    for (const file of files)
      for (const { name } of [...file.messageType, ...file.enumType]) names.add(`${scopeOf(file)}${name}`);
  }
  return [...names];
}
