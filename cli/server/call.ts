/**
 * `rdma-rpc call`: makes one call of any kind, with messages as JSON and without generated code. Descriptors
 * from the server or from files describe the messages.
 */
import type { Command } from '#commander';
import type { Channel } from '../../runtime/client/channel-type.ts';
import { RpcError } from '../../runtime/core/errors/rpc-error.ts';
import type { Metadata, MetadataValue } from '../../runtime/core/metadata.ts';
import type { CallReport } from './call-output.ts';
import { sayError, withServer } from './connection.ts';
import { metadataPair } from './metadata-flag.ts';
import { openSchema } from './schema/open-schema.ts';
import type { FoundMethod } from './schema/suggest.ts';
import { type DeclarationFlags, withSchemaFlags } from './schema-flags.ts';

interface CallFlags extends DeclarationFlags {
  readonly data?: string;
  readonly metadata: [string, MetadataValue][];
  readonly verbose?: true;
  readonly allowUnknownFields?: true;
  readonly emitDefaults?: true;
}

export function addCallCommand(program: Command): void {
  withSchemaFlags(
    program
      .command('call')
      .description(
        'call a method with JSON, and print the response as JSON; asks the server for the method (reflection) or reads files',
      )
      .argument('<address>', 'host:port or unix:/path')
      .argument('<method>', 'such as greeter.v1.Greeter/SayHello')
      .argument(
        '[request]',
        'request as JSON, or several requests for a stream; - reads stdin and sends each request as it arrives (default: {})',
      )
      .option('-d, --data <json>', 'the request as a flag instead of the argument; @ reads it from stdin')
      .option('-m, --metadata <key=value>', 'metadata to send; may be repeated', metadataPair, [])
      .option('-v, --verbose', 'also print the session and all metadata on stderr')
      .option('--allow-unknown-fields', 'ignore members of the request that are not fields')
      .option('--emit-defaults', 'also show fields of the response that have their default'),
  ).action(async (address: string, path: string, request: string | undefined, flags: CallFlags) => {
    const { data } = flags;
    const wrong = mistakeIn(request, data);
    if (wrong !== '') {
      sayError(new Error(wrong), flags);
      process.exitCode = 2;
      return;
    }
    await withServer(address, flags, async (channel) => {
      const [{ findMethod }, { requestsOf }, { stdinText }, { CallReport }] = await Promise.all([
        import('./schema/suggest.ts'),
        import('./request.ts'),
        import('./stdin.ts'),
        import('./call-output.ts'),
      ]);
      const schema = await openSchema(flags, () => channel);
      const found = await findMethod(schema, path);
      const { input } = found.method;
      const ignoreUnknownFields = flags.allowUnknownFields === true;
      const chunks = request === '-' || data === '@' ? stdinText() : [request ?? data ?? '{}'];
      const requests = requestsOf(chunks, {
        input,
        registry: found.registry,
        ignoreUnknownFields,
      });
      const report = new CallReport(channel, schema, found, flags);
      return await call(channel, found, requests, report, flags.metadata);
    });
  });
}

/** Returns the error in the source of the request, or '' when the source is valid. */
function mistakeIn(request: string | undefined, data: string | undefined): string {
  if (request !== undefined && data !== undefined)
    return 'the request is given twice: as an argument and with --data';
  // curl has the same form for a file. Valid JSON never begins with `@`.
  if (data !== undefined && data !== '@' && data.startsWith('@'))
    return `--data takes no file (${data}): @ alone is stdin, such as -d @ <${data.slice(1)}`;
  return '';
}

/** Returns the only request of a method without a stream of requests. */
async function single(requests: AsyncIterable<Uint8Array>, path: string): Promise<Uint8Array> {
  const all: Uint8Array[] = [];
  for await (const each of requests) all.push(each);
  if (all.length !== 1)
    throw new Error(`${path} takes one request, and got ${all.length === 0 ? 'none' : all.length}`);
  return all[0]!;
}

async function call(
  channel: Channel,
  { method }: FoundMethod,
  requests: AsyncIterable<Uint8Array>,
  report: CallReport,
  metadata: [string, MetadataValue][],
): Promise<number> {
  const [{ createClient }, { rawType, serviceOf }] = await Promise.all([
    import('../../runtime/client/client.ts'),
    import('./raw-type.ts'),
  ]);
  const fullName = `${method.parent.typeName}/${method.name}`;
  const client = createClient(serviceOf(method, rawType), channel) as unknown as {
    call(request: unknown, options: object): Promise<Uint8Array> | AsyncIterable<Uint8Array>;
  };
  /**
   * A wrong request in a stream ends the call. The error of the request is reported in place of the error of
   * the call.
   */
  let refused: { readonly error: unknown } | undefined;
  const counted = async function* (): AsyncGenerator<Uint8Array> {
    try {
      for await (const each of requests) {
        report.sent(each);
        yield each;
      }
    } catch (error) {
      refused = { error };
      throw error;
    }
  };
  const request = method.proto.clientStreaming ? counted() : await single(counted(), fullName);
  report.begin(metadata);
  try {
    const answer = client.call(request, {
      metadata,
      onHeader: (header: Metadata) => report.header(header),
      onTrailer: (trailer: Metadata) => report.trailer(trailer),
    });
    if (Symbol.asyncIterator in answer) for await (const each of answer) report.message(each);
    else report.message(await answer);
  } catch (error) {
    if (refused !== undefined) throw refused.error;
    if (!(error instanceof RpcError)) throw error;
    await report.failed(error);
    return 1;
  }
  report.succeeded();
  return 0;
}
