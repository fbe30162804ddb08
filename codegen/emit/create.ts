/** The generated `create` function: every field at its default, overlaid with what is given. */
import type { Field, Message, Oneof } from '../model/model.ts';
import { initialOf, literal } from './decode.ts';
import { quote } from './scalar.ts';
import type { Scope } from './scope.ts';
import { zeroOf } from './value.ts';

function given(field: Field, scope: Scope): string {
  const source = `init.${field.key}`;
  const { type } = field;
  const initial = initialOf(field, scope);
  const create = type.kind === 'message' ? scope.call(type, 'create') : undefined;
  switch (field.presence) {
    case 'repeated':
      // A loop of its own for each type: one for all would not know what it calls.
      if (create !== undefined)
        return `${source} === undefined ? [] : ${source}.map((value) => ${create}(value))`;
      return `$.copyList(${source})`;
    case 'map':
      return `$.copyMap(${source}${create === undefined ? '' : `, ${create}`})`;
    case 'required':
      return create === undefined
        ? `${source} ?? ${field.default ?? zeroOf(field, scope)}`
        : `${create}(${source})`;
    case 'optional':
      return create === undefined ? source : `${source} === undefined ? undefined : ${create}(${source})`;
    default:
      return `${source} ?? ${initial}`;
  }
}

/** Scalars are taken over as they are; messages become complete. */
function givenOneof(oneof: Oneof, scope: Scope): string {
  const source = `init.${oneof.key}`;
  const messages = oneof.fields.flatMap((field) =>
    field.type.kind === 'message'
      ? [
          `${source}?.case === ${quote(field.key)} ? { case: ${quote(field.key)}, value: ${scope.call(field.type, 'create')}(${source}.value) } : `,
        ]
      : [],
  );
  return `${messages.join('')}${source} ?? $.unset`;
}

export function emitCreate(message: Message, scope: Scope): string {
  const type = message.identifier;
  const body = literal(
    message,
    (field) => given(field, scope),
    (oneof) => givenOneof(oneof, scope),
  );
  const parameter = message.fields.some(({ presence }) => presence === 'required')
    ? `Partial<${message.init}>`
    : message.init;
  const unused = message.fields.length === 0 && !message.keepsUnknown ? '_' : '';
  const head = scope.head(message, 'create', [[`${unused}init`, parameter, '{}']], type);
  if (!message.keepsUnknown) return `${head}\n  return ${body};\n}`;
  return `${head}
  const m${scope.erasable(`: ${type}`)} = ${body};
  if (init.$unknownFields !== undefined) m.$unknownFields = init.$unknownFields;
  return m;
}`;
}
