/** An extension: the codec of a message with it as its only field, wrapped into a const. */
import type { Extension } from '../model/model.ts';
import { emitBound } from './bound.ts';
import { docLines } from './comment.ts';
import { emitCreate } from './create.ts';
import { emitDecode } from './decode.ts';
import { emitEncode } from './encode.ts';
import { emitFields } from './fields.ts';
import { quote } from './scalar.ts';
import type { Scope } from './scope.ts';
import { fieldType } from './shape.ts';

export function emitExtension(
  { identifier, fullName, extendee, message, ...about }: Extension,
  scope: Scope,
): string[] {
  const field = message.fields[0];
  if (field === undefined) return [];
  const decoded = fieldType(field, scope, 'decoded');
  const init = fieldType(field, scope, 'init');
  const optional = field.presence === 'repeated' ? '' : ' | undefined';
  const functions = (['create', 'bound', 'encodeTo', 'decodeFrom'] as const).map(
    (what) => `${what}: ${scope.call(message, what)}, `,
  );
  const codec = `$.messageType({ typeName: ${quote(fullName)}, ${functions.join('')}fields: () => ${emitFields(message, scope)} })`;
  const type = `$.Extension<${scope.type(extendee)}, ${decoded}${optional}, ${init}>`;
  const of = `{ name: ${quote(fullName)}, extends: ${quote(extendee.fullName)}, number: ${field.number} }`;
  return [
    `interface ${message.identifier} {\n  value${optional === '' ? '' : '?'}: ${decoded}${optional};\n}`,
    `interface ${message.init} {\n  readonly value?: ${init} | undefined;\n}`,
    emitCreate(message, scope),
    emitBound(message, scope),
    emitEncode(message, scope),
    emitDecode(message, scope),
    `${docLines(about, '')}export const ${identifier}: ${type} = /* @__PURE__ */ $.extension(${of}, /* @__PURE__ */ ${codec});`,
  ];
}
