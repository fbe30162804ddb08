/** A service: the definition const, and the types of its client and its handlers. */
import type { Method, Service } from '../model/model.ts';
import { docLines } from './comment.ts';
import { plainText } from './custom.ts';
import { quote } from './scalar.ts';
import type { Scope } from './scope.ts';

function options(method: Method): string {
  const entries: string[] = [];
  const { idempotencyLevel, oneWay, expectedResponseBytes, preferredCodec, custom } = method.options;
  if (idempotencyLevel !== undefined) entries.push(`idempotencyLevel: ${quote(idempotencyLevel)}`);
  if (method.deprecated) entries.push('deprecated: true');
  if (oneWay) entries.push('oneWay: true');
  if (expectedResponseBytes !== undefined) entries.push(`expectedResponseBytes: ${expectedResponseBytes}`);
  if (preferredCodec !== undefined) entries.push(`preferredCodec: ${quote(preferredCodec)}`);
  if (custom !== undefined) entries.push(`custom: ${plainText(custom)}`);
  return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`;
}

function definition(method: Method, scope: Scope): string {
  return `${docLines(method, '    ')}    ${method.key}: {
      name: ${quote(method.name)},
      path: ${quote(method.path)},
      id: ${method.id},
      requestType: ${scope.type(method.request)},
      requestStream: ${method.requestStream},
      responseType: ${scope.type(method.response)},
      responseStream: ${method.responseStream},
      options: ${options(method)},
    },\n`;
}

/** The caller gets no answer but that the request has arrived. */
function isOneWay(method: Method): boolean {
  return method.options.oneWay && !method.requestStream && !method.responseStream;
}

function clientSignature(method: Method, scope: Scope): string {
  const init = scope.init(method.request);
  const request = method.requestStream ? `requests: $rpc.Messages<${init}>` : `request: ${init}`;
  const streams = method.requestStream || method.responseStream;
  const result = method.responseStream ? 'AsyncIterable' : 'Promise';
  const options = streams ? 'StreamOptions' : 'CallOptions';
  return `(${request}, options?: $rpc.${options}) => ${result}<${isOneWay(method) ? 'void' : scope.type(method.response)}>`;
}

function handlerSignature(method: Method, scope: Scope): string {
  const type = scope.type(method.request);
  const init = isOneWay(method) ? 'void' : scope.init(method.response);
  const request = method.requestStream ? `requests: AsyncIterable<${type}>` : `request: ${type}`;
  const result = method.responseStream ? `$rpc.Messages<${init}>` : `${init} | Promise<${init}>`;
  return `(${request}, context: $rpc.HandlerContext) => ${result}`;
}

export function emitService(service: Service, scope: Scope): string[] {
  const members = (signature: (method: Method, scope: Scope) => string) =>
    service.methods
      .map((method) => `${docLines(method, '  ')}  readonly ${method.key}: ${signature(method, scope)};\n`)
      .join('');
  return [
    `${docLines(service, '')}export const ${service.definition} = {
  name: ${quote(service.name)},
  fullName: ${quote(service.fullName)},
  file: ${scope.file.descriptor},
${service.custom === undefined ? '' : `  custom: ${plainText(service.custom)},\n`}  methods: {
${service.methods.map((method) => definition(method, scope)).join('')}  },
} as const satisfies $.ServiceDefinition;`,
    `${docLines(service, '')}export interface ${service.client} {\n${members(clientSignature)}}`,
    `/** What a server implements of ${service.fullName}; a missing method answers UNIMPLEMENTED. */\nexport interface ${service.handlers} {\n${members(handlerSignature)}}`,
  ];
}
