/** `rdma-rpc call`: one call of any kind, messages as JSON, without generated code: the server's own descriptors say what they look like. */
import { text as readAll } from 'node:stream/consumers';
import { type Command, InvalidArgumentError } from '#commander';
import type { JsonValue } from '../../runtime/codec/json/index.ts';
import type { ServiceDefinition } from '../../runtime/codec/types.ts';
import type { Metadata, MetadataValue } from '../../runtime/core/metadata.ts';
import { RpcError } from '../../runtime/core/rpc-error.ts';
import { type ConnectionFlags, printable, withServer, withTimeout } from './connection.ts';

interface CallFlags extends ConnectionFlags {
  readonly metadata: [string, MetadataValue][];
}

/** Bytes are base64, as they are shown. */
function pair(text: string, previous: [string, MetadataValue][]): [string, MetadataValue][] {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('Give key=value.');
  const [key, value] = [text.slice(0, at), text.slice(at + 1)];
  if (!key.toLowerCase().endsWith('-bin')) return [...previous, [key, value]];
  if (!/^[\w+/-]*={0,2}$/.test(value)) throw new InvalidArgumentError('A key in -bin takes base64.');
  return [...previous, [key, Buffer.from(value, 'base64')]];
}

/** Values of JSON, one after another, as lines or as one value over many lines. */
function jsonValues(text: string): JsonValue[] {
  try {
    return [JSON.parse(text) as JsonValue];
  } catch (error) {
    const lines = text.split('\n').filter((line) => line.trim() !== '');
    if (lines.length < 2) throw new Error(`the request is not JSON: ${(error as Error).message}`);
    return lines.map((line, i) => {
      try {
        return JSON.parse(line) as JsonValue;
      } catch (inLine) {
        throw new Error(`line ${i + 1} of the request is not JSON: ${(inLine as Error).message}`);
      }
    });
  }
}

export function addCallCommand(program: Command): void {
  withTimeout(
    program
      .command('call')
      .description('call a method with JSON, and print the answer as JSON; the server must offer reflection')
      .argument('<address>', 'host:port or unix:/path')
      .argument('<method>', 'such as greeter.v1.Greeter/SayHello')
      .argument('[request]', 'JSON; a line each for a stream of requests; - reads it from stdin', '{}')
      .option('-m, --metadata <key=value>', 'metadata to send; may be repeated', pair, []),
  ).action((address: string, method: string, request: string, { metadata, ...flags }: CallFlags) =>
    withServer(address, flags, async (channel) => {
      const [
        { createClient },
        { DynamicTypes },
        { fromJson, toJsonString },
        { filesOfMethod },
        { withExtensions },
        { requestProblem, showError, showMetadata },
      ] = await Promise.all([
        import('../../runtime/client/client.ts'),
        import('./dynamic-type.ts'),
        import('../../runtime/codec/json/index.ts'),
        import('./suggest.ts'),
        import('./remote-extensions.ts'),
        import('./call-output.ts'),
      ]);
      const files = await filesOfMethod(channel, method);
      const types = new DynamicTypes(await withExtensions(channel, files));
      const found = types.method(method);
      if (found === undefined) throw new Error(`${method} is no method; give Service/Method`);
      const { registry } = types;
      const values = jsonValues(request === '-' ? await readAll(process.stdin) : request);
      const requests = values.map((value) => {
        try {
          return fromJson(found.input, value, { registry });
        } catch (error) {
          const text = requestProblem(error);
          throw text === undefined ? error : new Error(text);
        }
      });
      if (!found.requestStream && requests.length !== 1) throw new Error(`${method} takes one request`);

      const service = method.slice(0, method.indexOf('/'));
      const definition = {
        name: service,
        fullName: service,
        methods: { call: found },
      } satisfies ServiceDefinition;
      const { call } = createClient(definition as ServiceDefinition, channel) as unknown as {
        call(request: unknown, options: object): Promise<object> | AsyncIterable<object>;
      };
      let trailerShown = false;
      const options = {
        metadata,
        onHeader: (header: Metadata) => showMetadata('header', header),
        onTrailer: (trailer: Metadata) => {
          trailerShown = true;
          showMetadata('trailer', trailer);
        },
      };
      const indent = found.responseStream ? 0 : 2;
      const show = (message: object): void =>
        console.log(printable(toJsonString(found.output, message as never, { indent, registry })));
      try {
        const answer = call(found.requestStream ? requests : requests[0], options);
        if (Symbol.asyncIterator in answer) for await (const each of answer) show(each);
        else show(await answer);
      } catch (error) {
        if (!(error instanceof RpcError)) throw error;
        showError(error, registry, trailerShown);
        return 1;
      }
      return 0;
    }),
  );
}
