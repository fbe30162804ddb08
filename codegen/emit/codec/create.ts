/**
 * Emits the `create` function, which returns a message of the given values and the defaults of all other
 * fields.
 */
import type { Field, Message, Oneof } from '../../model/model.ts';
import { quote } from '../scalar.ts';
import type { FileScope } from '../scope.ts';
import { binding, braced, entry, propertiesOf, variableOf } from './binding.ts';
import { initialOf } from './decode.ts';
import { zeroOf } from './value.ts';

/** The initial value of the variable of a field or oneof, and the expression for the field's value. */
interface Given {
  readonly initial?: string;
  readonly value: string;
}

function given(field: Field, variable: string, scope: FileScope): Given {
  const { type } = field;
  const create = type.kind === 'message' ? scope.call(type, 'create') : undefined;
  switch (field.presence) {
    case 'repeated':
      // Each type has a loop of its own, because a shared loop would call unknown functions.
      if (create !== undefined)
        return { value: `${variable} === undefined ? [] : ${variable}.map((value) => ${create}(value))` };
      return { value: `${scope.local('copyList')}(${variable})` };
    case 'map':
      return { value: `${scope.local('copyMap')}(${variable}${create === undefined ? '' : `, ${create}`})` };
    case 'required':
      if (create !== undefined) return { value: `${create}(${variable})` };
      return { initial: field.default ?? zeroOf(field, scope), value: variable };
    case 'optional':
      return { value: create === undefined ? variable : `${variable} && ${create}(${variable})` };
    default:
      return { initial: initialOf(field, scope), value: variable };
  }
}

/** Values of scalar types are taken unchanged; messages are completed with defaults. */
function givenOneof(oneof: Oneof, variable: string, scope: FileScope): Given {
  const messages = oneof.fields.flatMap((field) => {
    if (field.type.kind !== 'message') return [];
    const name = quote(field.key);
    const create = scope.call(field.type, 'create');
    return [
      `${variable}.case === ${name} ? ${scope.local('choice')}(${name}, ${create}(${variable}.value)) : `,
    ];
  });
  return { initial: scope.local('unset'), value: `${messages.join('')}${variable}` };
}

export function emitCreate(message: Message, scope: FileScope): string {
  const type = message.identifier;
  const others = new Set(message.keepsUnknown ? ['m'] : []);
  const pattern: string[] = [];
  const literal: string[] = [];
  for (const { key, spare, field, oneof } of propertiesOf(message)) {
    const variable = variableOf(key, spare, others);
    const { initial, value } =
      oneof === undefined ? given(field, variable, scope) : givenOneof(oneof, variable, scope);
    pattern.push(binding(key, variable, initial));
    literal.push(entry(key, value));
  }
  if (message.keepsUnknown) pattern.push('$unknownFields');
  const parameter = message.fields.some(({ presence }) => presence === 'required')
    ? `Partial<${message.init}>`
    : message.init;
  // Counts the characters of the TypeScript form, so that both targets have the same line breaks.
  const types = 'function (:  = {}):  {'.length + parameter.length + type.length;
  const init = braced(pattern, types + scope.call(message, 'create').length, '');
  const head = scope.headOf(
    message,
    'create',
    [[pattern.length === 0 ? '_init' : init, parameter, '{}']],
    type,
  );
  if (!message.keepsUnknown) return `${head}\n  return ${braced(literal, '  return '.length, '  ')};\n}`;
  return `${head}
  const m${scope.erasable(`: ${type}`)} = ${braced(literal, '  const m:  = ;'.length + type.length, '  ')};
  if ($unknownFields !== undefined) m.$unknownFields = $unknownFields;
  return m;
}`;
}
