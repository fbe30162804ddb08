/**
 * Returns the function of a client for one method. The function starts calls on the channel, and is wrapped
 * in the interceptors of the method. `createClient` and the transport of connect-es use this file.
 */
import type { MethodDefinition, ServiceDefinition } from '../../codec/types.ts';
import type { Interceptor } from '../../core/interceptor.ts';
import type { ClientChannel } from '../channel.ts';
import { openStream } from '../stream/open-stream.ts';
import type { ClientMethod } from './client-method.ts';
import { type ClientMethodFunction, interceptedCall } from './intercepted-call.ts';

/**
 * Creates the function with which an application calls a method. `target` is `method` with the client's
 * settings. `interceptors` (outermost first) include the interceptors of the channel.
 */
export function callFunction(
  channel: ClientChannel,
  service: ServiceDefinition,
  method: MethodDefinition,
  target: ClientMethod,
  interceptors: readonly Interceptor[],
): ClientMethodFunction {
  const call: ClientMethodFunction =
    target.requestStream || target.responseStream
      ? (request, options) => openStream(channel.queue, target, request, options)
      : (request, options) => channel.unary(target, request, options);
  if (interceptors.length === 0) return call;
  return interceptedCall(service, method, target.timeoutMs, interceptors, channel.address, call);
}
