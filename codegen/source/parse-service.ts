/**
 * Parses services and their methods. The parser calls it.
 */
import { ServiceDescriptorProto } from '../descriptor/descriptor.rdma.ts';
import { parseOptionStatement } from './parse-option.ts';
import type { ParseState } from './parse-state.ts';
import type { OptionStatement } from './parsed.ts';

export function parseService(
  state: ParseState,
  into: ServiceDescriptorProto[],
  listPath: string,
  parent: string,
): void {
  const { stream } = state;
  const start = stream.peek();
  stream.expect('service');
  const path = `${listPath},${into.length}`;
  const name = stream.name("the service's name");
  const service = ServiceDescriptorProto.create({ name: name.text });
  const scope = parent === '' ? name.text : `${parent}.${name.text}`;
  into.push(service);
  stream.expect('{');
  state.element(path, start, name);
  const options: OptionStatement[] = [];
  state.block(() => {
    if (stream.is('option')) options.push(parseOptionStatement(stream));
    else if (stream.is('rpc')) method();
    else stream.expected('rpc or option');
  });
  state.options('ServiceOptions', service, scope, options);

  function method(): void {
    const methodPath = `${path},2,${service.method.length}`;
    const methodStart = stream.next();
    const methodName = stream.name("the method's name");
    const request = side('the request');
    stream.expect('returns');
    const response = side('the response');
    const descriptor: ServiceDescriptorProto['method'][number] = {
      name: methodName.text,
      inputType: request.type.text,
      outputType: response.type.text,
      ...(request.stream && { clientStreaming: true }),
      ...(response.stream && { serverStreaming: true }),
    };
    const block = stream.accept('{');
    if (!block) stream.expect(';');
    // As in protoc, empty braces give the method an empty options message.
    else descriptor.options = new Uint8Array(0);
    service.method.push(descriptor);
    state.element(methodPath, methodStart, methodName);
    state.place(`${methodPath},2`, request.type);
    state.place(`${methodPath},3`, response.type);
    const statements: OptionStatement[] = [];
    if (block) {
      state.block(() => {
        if (stream.is('option')) statements.push(parseOptionStatement(stream));
        else stream.expected('option or }');
      });
    }
    state.options('MethodOptions', descriptor, scope, statements);
  }

  function side(what: string) {
    stream.expect('(');
    // `stream` alone is the name of a message. In `stream .a.B` it is the keyword, followed by an absolute
    // name.
    const streaming = stream.is('stream') && !stream.is(')', 1);
    if (streaming) stream.next();
    const type = stream.dotted(`the message that is ${what}`);
    stream.expect(')');
    return { type, stream: streaming };
  }
}
