/**
 * The transport of connect-es over a channel. Its two methods, `unary` and `stream`, make calls and streams
 * of this package.
 */
import {
  create,
  type DescMessage,
  type DescMethod,
  isMessage,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel as Level } from '@bufbuild/protobuf/wkt';
import {
  type ContextValues,
  createContextValues,
  type Interceptor,
  type StreamRequest,
  type StreamResponse,
  type Transport,
  type UnaryRequest,
  type UnaryResponse,
} from '@connectrpc/connect';
import { callFunction } from '../../client/call/call-function.ts';
import { clientMethod } from '../../client/call/client-method.ts';
import type { ClientMethodFunction } from '../../client/call/intercepted-call.ts';
import { type ClientChannel, clientChannel } from '../../client/channel.ts';
import type { Channel } from '../../client/channel-type.ts';
import { methodId } from '../../codec/service/method-id.ts';
import type { MethodDefinition, ServiceDefinition } from '../../codec/types.ts';
import type { Metadata } from '../../core/metadata.ts';
import { checkNames } from '../../core/options.ts';
import type { CallOptions } from '../../core/types.ts';
import { endedWhenDropped, findDropped } from './abandoned.ts';
import { typeOf } from './message-type.ts';
import { toConnectError, toHeaders, toMetadata } from './metadata.ts';

export interface ConnectTransportOptions {
  /**
   * Interceptors of connect-es for all calls. The first interceptor is the outermost, as in connect-es. The
   * interceptors of the channel run inside them.
   */
  interceptors?: Interceptor[];
  /** Time limit in ms of calls that set no limit. Default: the limit of the channel. */
  defaultTimeoutMs?: number;
}

function definitionOf(method: DescMethod): MethodDefinition {
  const fullName = `${method.parent.typeName}/${method.name}`;
  const repeatable = method.idempotency !== Level.IDEMPOTENCY_UNKNOWN;
  return {
    name: method.name,
    fullName,
    id: methodId(fullName),
    input: typeOf(method.input),
    requestStream: method.methodKind === 'client_streaming' || method.methodKind === 'bidi_streaming',
    output: typeOf(method.output),
    responseStream: method.methodKind === 'server_streaming' || method.methodKind === 'bidi_streaming',
    options: repeatable
      ? { idempotencyLevel: method.idempotency === Level.IDEMPOTENT ? 'IDEMPOTENT' : 'NO_SIDE_EFFECTS' }
      : {},
  };
}

function serviceOf(method: DescMethod, definition: MethodDefinition): ServiceDefinition {
  const { name, typeName } = method.parent;
  return { name, fullName: typeName, methods: { [method.localName]: definition } };
}

type Next = (request: UnaryRequest | StreamRequest) => Promise<UnaryResponse | StreamResponse>;

class ChannelTransport implements Transport {
  readonly #channel: ClientChannel;
  readonly #interceptors: readonly Interceptor[];
  readonly #defaultTimeoutMs: number;
  readonly #methods = new WeakMap<DescMethod, ClientMethodFunction>();

  constructor(channel: ClientChannel, { interceptors = [], defaultTimeoutMs }: ConnectTransportOptions) {
    this.#channel = channel;
    this.#interceptors = interceptors;
    this.#defaultTimeoutMs = defaultTimeoutMs ?? channel.defaultTimeoutMs;
  }

  unary: Transport['unary'] = async (method, signal, timeoutMs, header, input, contextValues) => {
    const request = this.#request(method, signal, timeoutMs, header, contextValues);
    const next: Next = async ({ message, header, signal }) => {
      const received = { header: new Headers(), trailer: new Headers() };
      const options = this.#options(timeoutMs, header, signal, received);
      const response = await this.#call(method)(message, options);
      return {
        stream: false,
        service: method.parent,
        method,
        ...received,
        message: response,
      } as UnaryResponse;
    };
    const message = normal(method.input, input);
    return this.#run(next, { ...request, stream: false, method, message } as UnaryRequest) as Promise<never>;
  };

  stream: Transport['stream'] = async (method, signal, timeoutMs, header, input, contextValues) => {
    const request = this.#request(method, signal, timeoutMs, header, contextValues);
    const next: Next = async ({ message, header, signal }) => {
      const received = { header: new Headers(), trailer: new Headers() };
      const options = this.#options(timeoutMs, header, signal, received);
      const messages = endedWhenDropped(this.#messages(method, message as AsyncIterable<unknown>, options));
      return {
        stream: true,
        service: method.parent,
        method,
        ...received,
        message: messages,
      } as StreamResponse;
    };
    const message = normalAll(method.input, input);
    return this.#run(next, { ...request, stream: true, method, message } as StreamRequest) as Promise<never>;
  };

  /**
   * Yields the responses, one or many. For a method with a single request, the request is the first message
   * of `input`.
   */
  async *#messages(
    method: DescMethod,
    input: AsyncIterable<unknown>,
    options: CallOptions,
  ): AsyncGenerator<unknown, void, undefined> {
    try {
      const request = method.methodKind === 'server_streaming' ? await only(input) : input;
      const answer = this.#call(method)(request, options);
      findDropped(this.#channel.queue);
      if (method.methodKind === 'client_streaming') yield await answer;
      else yield* answer as AsyncIterable<unknown>;
    } catch (error) {
      throw toConnectError(error);
    }
  }

  /** Returns the method in the form of this package's clients, with the channel's interceptors around it. */
  #call(method: DescMethod): ClientMethodFunction {
    let call = this.#methods.get(method);
    if (call === undefined) {
      const definition = definitionOf(method);
      const target = clientMethod(definition, this.#defaultTimeoutMs, false, undefined, this.#channel.warn);
      const { interceptors } = this.#channel;
      call = callFunction(this.#channel, serviceOf(method, definition), definition, target, interceptors);
      this.#methods.set(method, call);
    }
    return call;
  }

  #request(
    method: DescMethod,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    header: ConstructorParameters<typeof Headers>[0],
    contextValues: ContextValues | undefined,
  ) {
    return {
      service: method.parent,
      requestMethod: 'POST',
      url: `rdma-rpc://${encodeURIComponent(this.#channel.address)}/${method.parent.typeName}/${method.name}`,
      signal: signal ?? new AbortController().signal,
      header: new Headers(header),
      contextValues: contextValues ?? createContextValues(),
      timeoutMs,
    };
  }

  #options(
    timeoutMs: number | undefined,
    header: Headers,
    signal: AbortSignal,
    received: { header: Headers; trailer: Headers },
  ): CallOptions {
    return {
      // In connect-es, a limit of 0 or less means that the time has passed.
      timeoutMs: timeoutMs === undefined ? undefined : Math.max(0, timeoutMs),
      signal,
      metadata: toMetadata(header),
      onHeader: (metadata: Metadata) => void toHeaders(metadata, received.header),
      onTrailer: (metadata: Metadata) => void toHeaders(metadata, received.trailer),
    };
  }

  async #run(next: Next, request: UnaryRequest | StreamRequest): Promise<UnaryResponse | StreamResponse> {
    const call = this.#interceptors.reduceRight<Next>(
      (inner, interceptor) => interceptor(inner as never) as Next,
      next,
    );
    try {
      return await call(request);
    } catch (error) {
      throw toConnectError(error);
    }
  }
}

function normal<D extends DescMessage>(desc: D, init: MessageInitShape<D>): MessageShape<D> {
  return isMessage(init, desc) ? (init as MessageShape<D>) : create(desc, init);
}

async function* normalAll<D extends DescMessage>(
  desc: D,
  inits: AsyncIterable<MessageInitShape<D>>,
): AsyncGenerator<MessageShape<D>> {
  for await (const init of inits) yield normal(desc, init);
}

/** Returns the request of a method with a single request. */
async function only(messages: AsyncIterable<unknown>): Promise<unknown> {
  for await (const message of messages) return message;
  throw new TypeError('a request is missing');
}

/**
 * Returns a transport for `createClient(Service, createConnectTransport(channel))` of connect-es. The
 * transport does not close the channel.
 */
export function createConnectTransport(channel: Channel, options: ConnectTransportOptions = {}): Transport {
  checkNames('createConnectTransport', options, ['interceptors', 'defaultTimeoutMs']);
  return new ChannelTransport(clientChannel('createConnectTransport', channel), options);
}
