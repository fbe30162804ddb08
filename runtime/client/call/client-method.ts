/** The properties of a method that its calls need, looked up once when the client is created. */

import { noMessage } from '../../boundary/outgoing/plain-types.ts';
import { noteMethod } from '../../boundary/traces/method-names.ts';
import type { MessageType, MethodDefinition } from '../../codec/types.ts';
import { type MessageCheck, requestCheck } from '../../core/message-check.ts';
import { processWarning, type Warn } from '../../core/warnings.ts';

export interface ClientMethod {
  readonly id: number;
  /** `pkg.Service/Method`, for errors. */
  readonly path: string;
  readonly requestType: MessageType<unknown, unknown>;
  readonly responseType: MessageType<unknown, never>;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
  /** Default time limit in ms, or -1 for no limit. */
  readonly timeoutMs: number;
  /** Whether calls wait for a connection even when connection attempts fail. */
  readonly waitForReady: boolean;
  /** Whether the definition or the client says that the method is idempotent. */
  readonly idempotent: boolean;
  /** True when `idempotent` was set, to either value. */
  readonly decided: boolean;
  /** Expected size of responses in bytes, from the definition, or 0 if unknown. */
  readonly expectedResponseBytes: number;
  readonly check: MessageCheck;
}

/** Returns the properties of a method. `warn` is called for mistakes in requests. */
export function clientMethod(
  definition: MethodDefinition,
  timeoutMs: number,
  waitForReady = false,
  idempotent?: boolean,
  warn: Warn = processWarning,
): ClientMethod {
  const declared = definition.options.idempotencyLevel !== undefined;
  const oneWay =
    definition.options.oneWay === true && !definition.requestStream && !definition.responseStream;
  const { id, input, output } = definition.preferred ?? definition;
  noteMethod(id, definition.fullName);
  return {
    id,
    path: definition.fullName,
    requestType: input,
    responseType: (oneWay ? noMessage : output) as MessageType<unknown, never>,
    requestStream: definition.requestStream,
    responseStream: definition.responseStream,
    timeoutMs,
    waitForReady,
    idempotent: idempotent ?? declared,
    decided: idempotent !== undefined || declared,
    expectedResponseBytes: definition.options.expectedResponseBytes ?? 0,
    check: requestCheck(definition.fullName, input, warn),
  };
}
