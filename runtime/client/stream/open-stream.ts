/**
 * Creates the stream of a client's call. It checks the options, and returns a promise or an async iterable,
 * depending on the kind of the method. A channel uses this file.
 */
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import type { CallOptions, StreamOptions } from '../../core/types.ts';
import type { StreamReader } from '../../stream/stream-reader.ts';
import { callExtras, callTimeoutMs } from '../call/call-options.ts';
import type { ClientMethod } from '../call/client-method.ts';
import type { CallExtras } from '../session/call-extras.ts';
import { ClientStream, type StreamHost } from './client-stream.ts';

const notForStreams = ['into', 'retry', 'hedging'] as const;

/** Resolves with the only response of a client-streaming method. */
async function onlyMessage(reader: StreamReader, path: string): Promise<unknown> {
  const first = await reader.next();
  if (first.done === true) {
    throw new RpcError(Status.INTERNAL, `${path}: the server sent no response`, { processed: 'yes' });
  }
  const second = await reader.next();
  if (second.done === true) return first.value;
  await reader.return();
  throw new RpcError(Status.INTERNAL, `${path}: the server sent more than one response`, {
    processed: 'yes',
  });
}

/**
 * Creates a stream. A stream begins when it is first read, and errors in its options are thrown then, too.
 */
export function openStream(
  host: StreamHost,
  method: ClientMethod,
  request: unknown,
  options: StreamOptions | undefined,
): Promise<unknown> | AsyncIterable<unknown> {
  let { timeoutMs } = method;
  let extras: CallExtras | undefined;
  let wrong: unknown;
  if (options !== undefined) {
    try {
      timeoutMs = callTimeoutMs(options, timeoutMs);
      const unfit = notForStreams.find((name) => (options as CallOptions)[name] !== undefined);
      if (unfit !== undefined) throw new TypeError(`${method.path}: a stream takes no \`${unfit}\``);
      extras = callExtras(method.path, options);
    } catch (error) {
      wrong = error;
    }
  }
  const stream = new ClientStream(host, method, request, timeoutMs, extras, wrong);
  return method.responseStream ? stream.reader : onlyMessage(stream.reader, method.path);
}
