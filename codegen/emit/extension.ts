/**
 * Emits an extension. It is the codec of a message whose only field is the extension, wrapped into a const.
 */
import type { Extension } from '../model/model.ts';
import { codecOf, emitFunctions } from './codec/functions.ts';
import { docLines } from './comment.ts';
import { quote } from './scalar.ts';
import type { FileScope } from './scope.ts';
import { fieldType } from './shape.ts';
import { exportedConst, internal, type Statement } from './statement.ts';

export function emitExtension(
  { identifier, fullName, extendee, message, ...about }: Extension,
  scope: FileScope,
): Statement[] {
  const field = message.fields[0];
  if (field === undefined) return [];
  const decoded = fieldType(field, scope, 'decoded');
  const init = fieldType(field, scope, 'init');
  const optional = field.presence === 'repeated' ? '' : ' | undefined';
  const codec = `$.generatedType(${codecOf(message, fullName, scope)})`;
  const type = `$.Extension<${scope.type(extendee)}, ${decoded}${optional}, ${init}>`;
  const of = `{ name: ${quote(fullName)}, extends: ${quote(extendee.fullName)}, number: ${field.number} }`;
  return [
    internal(
      scope.erasable(
        `interface ${message.identifier} {\n  value${optional === '' ? '' : '?'}: ${decoded}${optional};\n}\n\ninterface ${message.init} {\n  readonly value?: ${init} | undefined;\n}`,
      ),
    ),
    ...emitFunctions(message, scope),
    exportedConst(
      {
        doc: docLines(about, ''),
        name: identifier,
        type,
        value: `/* @__PURE__ */ $.extension(${of}, /* @__PURE__ */ ${codec})`,
      },
      scope,
    ),
  ];
}
