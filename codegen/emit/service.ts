/** A service: the definition const, and the types of its client and its handlers. */
import type { Message, Method, Plain, Service } from '../model/model.ts';
import { docLines } from './comment.ts';
import { plainText, plainType } from './custom.ts';
import { quote } from './scalar.ts';
import type { Scope } from './scope.ts';
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

/** Each entry of a method's definition: name, value, type. */
function definition(method: Method, scope: Scope): [key: string, value: string, type: string][] {
  const plain = (key: string, value: Plain): [string, string, string] => [
    key,
    plainText(value),
    plainType(value),
  ];
  const message = (key: string, type: Message): [string, string, string] => [
    key,
    scope.type(type),
    `typeof ${scope.type(type)}`,
  ];
  const values = options(method).map(([key, value]) => `${key}: ${plainText(value)}`);
  const types = options(method).map(([key, value]) => `readonly ${key}: ${plainType(value)}`);
  return [
    plain('name', method.name),
    plain('path', method.path),
    plain('id', method.id),
    message('requestType', method.request),
    plain('requestStream', method.requestStream),
    message('responseType', method.response),
    plain('responseStream', method.responseStream),
    [
      'options',
      values.length === 0 ? '{}' : `{ ${values.join(', ')} }`,
      types.length === 0 ? '{}' : `{ ${types.join('; ')} }`,
    ],
  ];
}

/** The type is written out: compilers with `isolatedDeclarations` infer none for consts that refer to others. */
function emitDefinition(service: Service, scope: Scope): Statement {
  const { definition: name, custom } = service;
  const lines = (line: (...entry: [key: string, value: string, type: string]) => string, method: Method) =>
    definition(method, scope)
      .map((entry) => `      ${line(...entry)}\n`)
      .join('');
  const values = service.methods.map(
    (method) => `    ${method.key}: {\n${lines((key, value) => `${key}: ${value},`, method)}    },\n`,
  );
  const types = service.methods.map(
    (method) =>
      `${docLines(method, '    ')}    readonly ${method.key}: {\n${lines((key, _, type) => `readonly ${key}: ${type};`, method)}    };\n`,
  );
  const type = `{
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
  return exportedConst({ doc: docLines(service, ''), name, type, value }, scope);
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

export function emitService(service: Service, scope: Scope): Statement[] {
  const members = (signature: (method: Method, scope: Scope) => string) =>
    service.methods
      .map((method) => `${docLines(method, '  ')}  readonly ${method.key}: ${signature(method, scope)};\n`)
      .join('');
  return [
    emitDefinition(service, scope),
    exportedType(
      `${docLines(service, '')}export interface ${service.client} {\n${members(clientSignature)}}`,
      scope,
    ),
    exportedType(
      `/** What a server implements of ${service.fullName}; a missing method answers UNIMPLEMENTED. */\nexport interface ${service.handlers} {\n${members(handlerSignature)}}`,
      scope,
    ),
  ];
}
