/**
 * `rdma-rpc/grpc/client`: generated clients over gRPC, for services whose server does not use RDMA. Code
 * written for `createClient` works unchanged with `createGrpcClient`. It needs `@grpc/grpc-js`, an optional
 * peer dependency. The application passes it a client of grpc-js, which manages addresses, TLS and
 * connections.
 */
import {
  checkHedgingFits,
  type Defaults,
  defaultsOf,
  withDefaults,
} from '../../client/call/client-defaults.ts';
import { clientMethod } from '../../client/call/client-method.ts';
import { type ClientMethodFunction, interceptedCall } from '../../client/call/intercepted-call.ts';
import { type Attempts, repeated } from '../../client/call/repeat.ts';
import { Pauses } from '../../client/connections/pauses.ts';
import type { Repeats } from '../../client/connections/retry.ts';
import { RetryBudget } from '../../client/connections/retry-budget.ts';
import type { MethodDefinition, ServiceDefinition } from '../../codec/types.ts';
import { checkedInterceptors } from '../../core/interceptor.ts';
import { requestCheck } from '../../core/message-check.ts';
import { checkNames } from '../../core/options.ts';
import type { CallOptions, Client, ClientDefaults } from '../../core/types.ts';
import { processWarning } from '../../core/warnings.ts';
import { type GrpcClient, type GrpcMethod, grpcResponse, grpcResponses } from './client-call.ts';

export type { GrpcClient } from './client-call.ts';

/** Options that a stream does not accept. Streams over a channel refuse the same options. */
const notForStreams = ['into', 'retry', 'hedging'] as const;

function streamed(method: GrpcMethod): ClientMethodFunction {
  const { fullName, responseStream } = method.definition;
  const refuse = (options: CallOptions): void => {
    const unfit = notForStreams.find((name) => options?.[name] !== undefined);
    if (unfit !== undefined) throw new TypeError(`${fullName}: a stream takes no \`${unfit}\``);
  };
  if (responseStream) {
    return async function* (request, options = {}) {
      refuse(options);
      yield* grpcResponses(method, request, options);
    };
  }
  return async (request, options = {}) => {
    refuse(options);
    return grpcResponse(method, request, options);
  };
}

function unary(method: GrpcMethod, repeats: Repeats): ClientMethodFunction {
  const channel: Attempts = {
    repeats,
    attempt: (_, request, options = {}) => grpcResponse(method, request, options),
  };
  const target = clientMethod(method.definition, method.timeoutMs, method.waitForReady, method.idempotent);
  return (request, options = {}) => repeated(channel, target, request, options);
}

function functionOf(method: GrpcMethod, repeats: Repeats): ClientMethodFunction {
  const { requestStream, responseStream } = method.definition;
  return requestStream || responseStream ? streamed(method) : unary(method, repeats);
}

/**
 * Makes a client of `definition` over a client of grpc-js, `new Client(address, credentials)`. The
 * application closes the client of grpc-js itself. The result has the interface of a client of
 * `createClient`, with the same options, defaults, interceptors and errors. Only the option `into` has no
 * effect, because gRPC manages its own memory. Throws for unknown method or option names.
 */
export function createGrpcClient<D extends ServiceDefinition>(
  definition: D,
  client: GrpcClient,
  defaults: ClientDefaults<D> = {},
): Client<D> {
  const what = `createGrpcClient ${definition.fullName}`;
  if (typeof (client as Partial<GrpcClient> | undefined)?.makeBidiStreamRequest !== 'function')
    throw new TypeError(
      `${what}: the second argument must be a client of grpc-js: new Client(address, credentials)`,
    );
  checkNames(what, defaults, ['*', ...Object.keys(definition.methods)]);
  checkHedgingFits(what, defaults as Defaults, Object.entries(definition.methods));
  const repeats: Repeats = { budget: new RetryBudget(), pauses: new Pauses() };
  const result: Record<string, unknown> = {};
  for (const [name, method] of Object.entries(definition.methods) as [string, MethodDefinition][]) {
    const {
      timeoutMs = -1,
      waitForReady = false,
      idempotent,
      others,
    } = defaultsOf(what, defaults as Defaults, name, method);
    const interceptors = ['*', name].flatMap((key) =>
      checkedInterceptors(`${what}: interceptors of ${key}`, (defaults as Defaults)[key]?.interceptors),
    );
    const check = requestCheck(method.fullName, method.input, processWarning);
    let call = functionOf(
      { client, definition: method, timeoutMs, waitForReady, idempotent, check },
      repeats,
    );
    if (interceptors.length > 0)
      call = interceptedCall(
        definition,
        method,
        timeoutMs,
        interceptors,
        client.getChannel().getTarget(),
        call,
      );
    result[name] = others === undefined ? call : withDefaults(call, others, false);
  }
  return Object.freeze(result) as Client<D>;
}
