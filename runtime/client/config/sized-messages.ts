/**
 * Limits of the message sizes of one method, from a service configuration. The limits are wrapped message
 * types, which check the encoded size. A request that is too large is not sent; a response that is too large
 * becomes an error of the call. `createClient` uses this file; methods without such a limit keep their types.
 */
import type { MessageType } from '../../codec/types.ts';
import { MessageLimit } from '../../core/errors/failure.ts';
import type { ClientMethod } from '../call/client-method.ts';
import type { MethodSettings } from './service-config.ts';

function limitedRequest<T, Init>(
  path: string,
  type: MessageType<T, Init>,
  max: number,
): MessageType<T, Init> {
  return Object.create(type, {
    encodeTo: {
      value: (...args: Parameters<MessageType<T, Init>['encodeTo']>): number => {
        const [, writer, at] = args;
        const end = type.encodeTo(...args);
        const bytes = end - at + writer.gathered;
        if (bytes > max) throw new MessageLimit(path, bytes, 'maxRequestMessageBytes', max, 'no');
        return end;
      },
    },
  });
}

function limitedResponse<T, Init>(
  path: string,
  type: MessageType<T, Init>,
  max: number,
): MessageType<T, Init> {
  return Object.create(type, {
    decodeFrom: {
      value: (...args: Parameters<MessageType<T, Init>['decodeFrom']>): T => {
        const [, at, end] = args;
        if (end - at > max) throw new MessageLimit(path, end - at, 'maxResponseMessageBytes', max, 'yes');
        return type.decodeFrom(...args);
      },
    },
  });
}

/** Returns the method with the limits of its configuration. */
export function withMessageLimits(method: ClientMethod, settings: MethodSettings | undefined): ClientMethod {
  const { requestMaxBytes, responseMaxBytes } = settings ?? {};
  if (requestMaxBytes === undefined && responseMaxBytes === undefined) return method;
  const { path, requestType, responseType } = method;
  return {
    ...method,
    requestType:
      requestMaxBytes === undefined ? requestType : limitedRequest(path, requestType, requestMaxBytes),
    responseType:
      responseMaxBytes === undefined ? responseType : limitedResponse(path, responseType, responseMaxBytes),
  };
}
