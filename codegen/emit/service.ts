/** A service: the definition const, and the types of its client and its handlers. */
import type { Method, Service } from '../model/model.ts';
import { docLines } from './comment.ts';
import { quote } from './scalar.ts';
import type { Scope } from './scope.ts';

function options(method: Method): string {
  const entries: string[] = [];
  if (method.idempotencyLevel !== undefined)
    entries.push(`idempotencyLevel: ${quote(method.idempotencyLevel)}`);
  if (method.deprecated) entries.push('deprecated: true');
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

export function emitService(service: Service, scope: Scope): string[] {
  const unary = service.methods.filter((method) => !method.requestStream && !method.responseStream);
  const client = unary.map((method) => {
    const signature = `(request: ${scope.init(method.request)}, options?: $rpc.CallOptions) => Promise<${scope.type(method.response)}>`;
    return `${docLines(method, '  ')}  readonly ${method.key}: ${signature};\n`;
  });
  const handlers = unary.map((method) => {
    const response = scope.init(method.response);
    const signature = `(request: ${scope.type(method.request)}, context: $rpc.HandlerContext) => ${response} | Promise<${response}>`;
    return `${docLines(method, '  ')}  readonly ${method.key}: ${signature};\n`;
  });
  return [
    `${docLines(service, '')}export const ${service.definition} = {
  name: ${quote(service.name)},
  fullName: ${quote(service.fullName)},
  file: ${scope.file.descriptor},
  methods: {
${service.methods.map((method) => definition(method, scope)).join('')}  },
} as const satisfies $.ServiceDefinition;`,
    `${docLines(service, '')}export interface ${service.client} {\n${client.join('')}}`,
    `/** What a server implements of ${service.fullName}; a missing method answers UNIMPLEMENTED. */\nexport interface ${service.handlers} {\n${handlers.join('')}}`,
  ];
}
