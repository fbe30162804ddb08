/**
 * Emits a service: the definition const, and the types of its client and its handlers.
 */
import type { Method, Plain, Service } from '../model/model.ts';
import { docLines } from './comment.ts';
import { plainText, plainType } from './custom.ts';
import { quote } from './scalar.ts';
import type { FileScope } from './scope.ts';
import { exportedConst, exportedType, type Statement } from './statement.ts';

function options(method: Method): [key: string, value: Plain][] {
  const { idempotencyLevel, oneWay, expectedResponseBytes, preferredCodec, custom } = method.options;
  const entries: [key: string, value: Plain | undefined][] = [
    ['idempotencyLevel', idempotencyLevel],
    ['deprecated', method.deprecated || undefined],
    ['oneWay', oneWay || undefined],
    ['expectedResponseBytes', expectedResponseBytes],
    ['preferredCodec', preferredCodec],
    ['custom', custom],
  ];
  return entries.filter((entry): entry is [string, Plain] => entry[1] !== undefined);
}

/** Returns the type of a const `new $.Method(...)`. */
function methodType(method: Method, scope: FileScope): string {
  const { request, response, requestStream, responseStream } = method;
  const messages = [scope.type(request), scope.init(request), scope.type(response), scope.init(response)];
  const types = options(method).map(([key, value]) => `readonly ${key}: ${plainType(value)}`);
  const named = types.length === 0 ? '{}' : `{ ${types.join('; ')} }`;
  return `$.Method<${[...messages, requestStream, responseStream, named].join(', ')}>`;
}

function methodValue(method: Method, scope: FileScope): string {
  const values = options(method).map(([key, value]) => `${key}: ${plainText(value)}`);
  const input = scope.value(method.request);
  const output = scope.value(method.response);
  const { preferredId } = method;
  const preferred =
    preferredId === undefined
      ? ''
      : `\n      preferred: /* @__PURE__ */ ${scope.msgpack('msgpackForm')}(${preferredId}, ${input}, ${output}),`;
  return `/* @__PURE__ */ new $.Method({
      fullName: ${quote(method.path)},
      id: ${method.id},
      input: ${input},
      requestStream: ${method.requestStream},
      output: ${output},
      responseStream: ${method.responseStream},
      options: ${values.length === 0 ? '{}' : `{ ${values.join(', ')} }`},${preferred}
    })`;
}

/**
 * The type is written out, because compilers with `isolatedDeclarations` infer no type for consts that refer
 * to other consts. The type has a name, so that editors show `Client<GreeterDefinition>` instead of its
 * content.
 */
function emitDefinition(service: Service, scope: FileScope): Statement[] {
  const { definition: name, custom } = service;
  const types = service.methods.map(
    (method) => `${docLines(method, '    ')}    readonly ${method.key}: ${methodType(method, scope)};\n`,
  );
  const values = service.methods.map((method) => `    ${method.key}: ${methodValue(method, scope)},\n`);
  const type = `export interface ${name} {
  readonly name: ${quote(service.name)};
  readonly fullName: ${quote(service.fullName)};
  readonly file: $.FileDescriptor;
${custom === undefined ? '' : `  readonly custom: ${plainType(custom)};\n`}  readonly methods: {
${types.join('')}  };
}`;
  const value = `{
  name: ${quote(service.name)},
  fullName: ${quote(service.fullName)},
  file: ${scope.file.descriptor},
${custom === undefined ? '' : `  custom: ${plainText(custom)},\n`}  methods: {
${values.join('')}  },
}`;
  return [
    exportedType(type, scope),
    exportedConst({ doc: docLines(service, ''), name, type: name, value }, scope),
  ];
}

/** Returns whether the caller gets only the acknowledgement that the request has arrived. */
function isOneWay(method: Method): boolean {
  return method.options.oneWay && !method.requestStream && !method.responseStream;
}

function clientSignature(method: Method, scope: FileScope): string {
  const init = scope.init(method.request);
  const request = method.requestStream ? `requests: ${scope.rpc('Messages')}<${init}>` : `request: ${init}`;
  const streams = method.requestStream || method.responseStream;
  const result = method.responseStream ? 'AsyncIterable' : 'Promise';
  const options = streams ? 'StreamOptions' : 'CallOptions';
  return `(${request}, options?: ${scope.rpc(options)}) => ${result}<${isOneWay(method) ? 'void' : scope.type(method.response)}>`;
}

function handlerSignature(method: Method, scope: FileScope): string {
  const type = scope.type(method.request);
  const init = isOneWay(method) ? 'void' : scope.init(method.response);
  const request = method.requestStream ? `requests: AsyncIterable<${type}>` : `request: ${type}`;
  const result = method.responseStream ? `${scope.rpc('Messages')}<${init}>` : `${init} | Promise<${init}>`;
  return `(${request}, context: ${scope.rpc('HandlerContext')}) => ${result}`;
}

export function emitService(service: Service, scope: FileScope): Statement[] {
  const members = (signature: (method: Method, scope: FileScope) => string) =>
    service.methods
      .map((method) => `${docLines(method, '  ')}  readonly ${method.key}: ${signature(method, scope)};\n`)
      .join('');
  return [
    ...emitDefinition(service, scope),
    exportedType(
      `${docLines(service, '')}export interface ${service.client} {\n${members(clientSignature)}}`,
      scope,
    ),
    exportedType(
      `/** The methods of ${service.fullName} that a server implements. A missing method answers UNIMPLEMENTED. */\nexport interface ${service.handlers} {\n${members(handlerSignature)}}`,
      scope,
    ),
  ];
}
