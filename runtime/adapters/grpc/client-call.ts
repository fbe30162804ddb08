/**
 * One call of any kind over a client of grpc-js. On gRPC's wire all calls are streams, with one or many
 * messages in each direction. The call has the options and errors of this package. client.ts uses this file.
 */
import type { Client, ClientDuplexStream, ServiceError, StatusObject } from '@grpc/grpc-js';
import { callTimeoutMs } from '../../client/call/call-options.ts';
import type { MethodDefinition } from '../../codec/types.ts';
import { failure, reasonOf, requestFault, responseFault } from '../../core/errors/failure.ts';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import { asyncIterable } from '../../core/intercepted-messages.ts';
import type { MessageCheck } from '../../core/message-check.ts';
import type { Metadata } from '../../core/metadata.ts';
import { Scope } from '../../core/scopes.ts';
import type { CallOptions } from '../../core/types.ts';
import { errorOf, fromGrpc, toGrpc } from './client-metadata.ts';

/** The part of a client of grpc-js that this package uses. */
export type GrpcClient = Pick<Client, 'makeBidiStreamRequest' | 'getChannel'>;

/** A method, with the defaults that the client has for all calls of the method. */
export interface GrpcMethod {
  readonly client: GrpcClient;
  readonly definition: MethodDefinition;
  /** Default time limit in ms, or -1 for no limit. */
  readonly timeoutMs: number;
  readonly waitForReady: boolean;
  /**
   * Whether the client's defaults declare the method idempotent. It is undefined when the defaults do not
   * contain this setting.
   */
  readonly idempotent?: boolean | undefined;
  readonly check: MessageCheck;
}

type Stream = ClientDuplexStream<Buffer, Buffer>;
const same = (bytes: Buffer): Buffer => bytes;

class GrpcClientCall {
  readonly #method: MethodDefinition;
  readonly #options: CallOptions;
  /**
   * The caller's async context, in which callbacks run. grpc-js would run them in the context that opened the
   * connection.
   */
  readonly #scope = new Scope();
  readonly #stream: Stream;
  /** The error with which this side has cancelled the call. The caller gets this error. */
  #gaveUp: { readonly error: unknown } | undefined;
  #done = false;
  #status: StatusObject | undefined;
  #requests: AsyncIterator<unknown> | undefined;
  /** Wakes the writer that waits for room. */
  #wake: (() => void) | undefined;
  readonly #check: MessageCheck;

  constructor({ client, definition, timeoutMs, waitForReady, check }: GrpcMethod, options: CallOptions) {
    this.#check = check;
    const path = definition.fullName;
    const limitMs = callTimeoutMs(options, timeoutMs);
    for (const signal of [options.signal, options.context?.signal])
      if (signal?.aborted === true) throw failure(reasonOf(signal.reason), path, 'no', '', signal.reason);
    const metadata = toGrpc(path, options.metadata, options.waitForReady ?? waitForReady);
    const deadline = limitMs < 0 ? Number.POSITIVE_INFINITY : Date.now() + limitMs;
    this.#method = definition;
    this.#options = options;
    try {
      this.#stream = client.makeBidiStreamRequest(`/${path}`, same, same, metadata, { deadline });
    } catch (cause) {
      // A closed client throws a plain Error. The call then ends with UNAVAILABLE, as on a channel of this
      // package.
      const why = `${path}: grpc-js cannot make the call: ${(cause as Error).message}`;
      throw new RpcError(Status.UNAVAILABLE, why, { processed: 'no', cause });
    }
    this.#stream.on('metadata', (header) => this.#tell(this.#options.onHeader, fromGrpc(header)));
    this.#stream.on('status', (status) => {
      this.#status = status;
      this.#finish();
    });
    // The reader of the responses gets the error. The stream still needs a listener, because an `error` event
    // without a listener would end the process.
    this.#stream.on('error', () => this.#finish());
    this.#stream.on('drain', () => this.#wake?.());
    for (const signal of [options.signal, options.context?.signal])
      signal?.addEventListener('abort', this.#onAbort);
  }

  #onAbort = (): void => {
    const reason = [this.#options.signal, this.#options.context?.signal].find(
      (each) => each?.aborted,
    )?.reason;
    this.#giveUp(failure(reasonOf(reason), this.#method.fullName, 'maybe', '', reason));
  };

  #giveUp(error: unknown): void {
    if (this.#done) return;
    this.#gaveUp ??= { error };
    this.#stream.cancel();
  }

  /** Calls a callback of the caller. A callback that throws makes the call fail. */
  #tell(callback: ((metadata: Metadata) => void) | undefined, metadata: Metadata): void {
    if (callback === undefined || metadata.size === 0) return;
    try {
      this.#scope.run(callback, undefined, metadata);
    } catch (error) {
      // Records the error even after the end of the call, because the trailer is reported then.
      this.#gaveUp ??= { error: responseFault(this.#method.fullName, error) };
      this.#stream.cancel();
    }
  }

  /**
   * Sends nothing more, and ends the caller's requests if they are not finished. Further calls do nothing.
   */
  #finish(): void {
    if (this.#done) return;
    this.#done = true;
    for (const signal of [this.#options.signal, this.#options.context?.signal])
      signal?.removeEventListener('abort', this.#onAbort);
    this.#wake?.();
    const requests = this.#requests;
    this.#requests = undefined;
    if (requests?.return === undefined) return;
    const { return: leave } = requests;
    Promise.resolve()
      .then(() => this.#scope.run(leave, requests))
      .catch(() => undefined);
  }

  #encode(message: unknown): Buffer {
    try {
      const bytes = this.#method.input.encode(message);
      if (this.#check.left > 0) this.#check.look(message);
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    } catch (error) {
      throw requestFault(this.#method.fullName, error, this.#method.requestStream ? 'maybe' : 'no');
    }
  }

  /**
   * Sends the caller's requests as fast as the server takes them. An error thrown by the caller's iterable is
   * returned unchanged.
   */
  async send(given: unknown): Promise<void> {
    try {
      if (this.#method.requestStream) {
        const iterable = asyncIterable(given, `${this.#method.fullName}: the requests`);
        const requests = iterable[Symbol.asyncIterator]();
        this.#requests = requests;
        for (;;) {
          const next = await requests.next();
          if (next.done === true) this.#requests = undefined;
          if (next.done === true || this.#done) break;
          if (!this.#stream.write(this.#encode(next.value))) await this.#room();
        }
      } else this.#stream.write(this.#encode(given));
      if (!this.#done) this.#stream.end();
    } catch (error) {
      this.#giveUp(error ?? new Error(`${this.#method.fullName}: the requests failed`));
    }
  }

  #room(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = undefined;
        resolve();
      };
      if (this.#done) this.#wake();
    });
  }

  async *responses(): AsyncGenerator<unknown, void, undefined> {
    const path = this.#method.fullName;
    try {
      for await (const bytes of this.#stream as AsyncIterable<Buffer>) {
        if (this.#gaveUp !== undefined) break;
        let message: unknown;
        try {
          message = this.#method.output.decode(bytes);
        } catch (error) {
          throw responseFault(path, error);
        }
        yield message;
      }
      if (this.#gaveUp !== undefined) throw this.#gaveUp.error;
      this.#tell(this.#options.onTrailer, fromGrpc(this.#status?.metadata ?? this.#noMetadata(path)));
      // A callback that has thrown may have set `#gaveUp`.
      const late = this.#gaveUp as { readonly error: unknown } | undefined;
      if (late !== undefined) throw late.error;
    } catch (error) {
      if (this.#gaveUp !== undefined) throw this.#gaveUp.error;
      if (!isServiceError(error)) throw error;
      const result = errorOf(path, error);
      this.#tell(this.#options.onTrailer, result.trailer);
      throw result;
    } finally {
      this.#finish();
      this.#stream.cancel();
    }
  }

  #noMetadata(path: string): never {
    throw responseFault(path, new Error('it ended without a status'));
  }
}

function isServiceError(error: unknown): error is ServiceError {
  return (
    error instanceof Error && typeof (error as Partial<ServiceError>).code === 'number' && 'details' in error
  );
}

/**
 * Returns the responses of a call. The call starts when the result is first read, as a stream over a channel
 * does. Invalid options also cause an error only then.
 */
export async function* grpcResponses(
  method: GrpcMethod,
  request: unknown,
  options: CallOptions,
): AsyncGenerator<unknown, void, undefined> {
  const call = new GrpcClientCall(method, options);
  void call.send(request);
  yield* call.responses();
}

/** Resolves with the response of a method that has a single response. */
export async function grpcResponse(
  method: GrpcMethod,
  request: unknown,
  options: CallOptions,
): Promise<unknown> {
  const responses: unknown[] = [];
  for await (const response of grpcResponses(method, request, options)) {
    responses.push(response);
    if (responses.length > 1) break;
  }
  if (responses.length === 1) return method.definition.options.oneWay === true ? undefined : responses[0];
  const count = responses.length === 0 ? 'no response' : 'more than one response';
  throw responseFault(method.definition.fullName, new Error(`the server sent ${count}`));
}
