/**
 * `rdma-rpc/validate`: an interceptor for servers and clients that checks messages against the protovalidate
 * rules of their .proto (`(buf.validate.field).string.email = true`). It needs `@bufbuild/protovalidate` and
 * `@bufbuild/protobuf`, which are optional peer dependencies and implement the rules.
 */
import { type DescMessage, type FileRegistry, fromBinary } from '@bufbuild/protobuf';
import { createValidator, type Validator, type ValidatorOptions } from '@bufbuild/protovalidate';
import { CodecError } from '../../codec/error.ts';
import type { FileDescriptor } from '../../codec/file-descriptor.ts';
import type { MessageType, MethodDefinition, ServiceDefinition } from '../../codec/types.ts';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status, type StatusCode } from '../../core/errors/status.ts';
import type { Interceptor, Next, RpcRequest, RpcResponse } from '../../core/interceptor.ts';
import { checkNames } from '../../core/options.ts';
import { hasRules, registryOf } from './schema.ts';
import { violationDetails, violationsText } from './violations.ts';

export interface ValidationOptions {
  /** Whether to check requests. Default true. */
  readonly requests?: boolean | undefined;
  /**
   * Whether to check responses, too: the responses of handlers on a server, and received responses on a
   * client. A response that breaks a rule becomes INTERNAL. Default false.
   */
  readonly responses?: boolean | undefined;
  /** Whether to report only the first broken rule. Default false. */
  readonly failFast?: boolean | undefined;
  /**
   * Further options of protovalidate's `createValidator`. When they have no registry, a registry is made from
   * the service's files, with their predefined rules.
   */
  readonly validator?: ValidatorOptions | undefined;
}

const names: readonly (keyof ValidationOptions)[] = ['requests', 'responses', 'failFast', 'validator'];

/** Checks one message. Throws RpcError. */
type Check = (message: unknown) => void;
const nothing: Check = () => undefined;

/**
 * Validators for the files of services. Each validator knows the predefined rules of the file of its service.
 */
class Validators {
  readonly #options: ValidationOptions;
  readonly #byFile = new WeakMap<FileDescriptor, { registry: FileRegistry; validator: Validator }>();

  constructor(options: ValidationOptions) {
    this.#options = options;
  }

  #of(file: FileDescriptor): { registry: FileRegistry; validator: Validator } {
    let found = this.#byFile.get(file);
    if (found === undefined) {
      const { failFast = false, validator } = this.#options;
      const registry = registryOf(file);
      found = { registry, validator: createValidator({ registry, failFast, ...validator }) };
      this.#byFile.set(file, found);
    }
    return found;
  }

  /**
   * Returns the check for a message. It does nothing for services without a schema and for messages without
   * rules.
   */
  checkOf(
    service: ServiceDefinition,
    method: MethodDefinition,
    type: MessageType<unknown, unknown>,
    what: 'request' | 'response',
  ): Check {
    const { file } = service;
    if (file === undefined) return nothing;
    const { registry, validator } = this.#of(file);
    const desc = registry.getMessage(type.typeName);
    if (desc === undefined || !hasRules(desc)) return nothing;
    const code = what === 'request' ? Status.INVALID_ARGUMENT : Status.INTERNAL;
    return (message) => check(validator, desc, type, message, `${method.fullName}: the ${what}`, code);
  }
}

function check(
  validator: Validator,
  desc: DescMessage,
  type: MessageType<unknown, unknown>,
  message: unknown,
  what: string,
  code: StatusCode,
): void {
  // A call that was cancelled has no response.
  if (message === undefined) return;
  let bytes: Uint8Array;
  try {
    bytes = type.encode(message);
  } catch (error) {
    // The value is not a message of the type. The message's encoder reports the error later.
    if (error instanceof CodecError) return;
    throw error;
  }
  const result = validator.validate(desc, fromBinary(desc, bytes));
  if (result.kind === 'valid') return;
  if (result.kind === 'error') {
    const text = `${what} cannot be checked: a rule of ${type.typeName} is wrong: ${result.error.message}`;
    throw new RpcError(Status.INTERNAL, text, { cause: result.error, processed: 'no' });
  }
  const { violations, error } = result;
  throw new RpcError(code, `${what} breaks a rule: ${violationsText(violations)}`, {
    details: violationDetails(violations),
    cause: error,
    processed: 'no',
  });
}

async function* checked(messages: AsyncIterable<unknown>, one: Check): AsyncGenerator<unknown> {
  for await (const message of messages) {
    one(message);
    yield message;
  }
}

function checkedRequest(request: RpcRequest, one: Check): RpcRequest {
  if (one === nothing) return request;
  if (request.stream) return { ...request, message: checked(request.message, one) };
  one(request.message);
  return request;
}

function checkedResponse(response: RpcResponse, one: Check): RpcResponse {
  if (one === nothing) return response;
  if (response.stream) return { ...response, message: checked(response.message, one) };
  one(response.message);
  return response;
}

/**
 * Returns the interceptor for `createServer().use(validation())` and `createClient(…, { '*': { interceptors:
 * [validation()] } })`. A request that breaks a rule becomes INVALID_ARGUMENT, and no handler sees it (in a
 * stream, the handler's next read throws). The error has the broken rules as details, in the forms
 * google.rpc.BadRequest and buf.validate.Violations. A message with rules is encoded an additional time for
 * the check. A message without rules costs nothing. Throws a TypeError for unknown options.
 */
export function validation(options: ValidationOptions = {}): Interceptor {
  checkNames('validation', options, names);
  const { requests = true, responses = false } = options;
  const validators = new Validators(options);
  const checks = new WeakMap<MethodDefinition, readonly [request: Check, response: Check]>();
  const checksOf = ({ service, method }: RpcRequest): readonly [Check, Check] => {
    let found = checks.get(method);
    if (found === undefined) {
      found = [
        requests ? validators.checkOf(service, method, method.input, 'request') : nothing,
        responses ? validators.checkOf(service, method, method.output, 'response') : nothing,
      ];
      checks.set(method, found);
    }
    return found;
  };
  return (next: Next) => async (request) => {
    const [one, back] = checksOf(request);
    return checkedResponse(await next(checkedRequest(request, one)), back);
  };
}
