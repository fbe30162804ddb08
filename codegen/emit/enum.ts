/**
 * Emits enums as const objects. A type stripper then has nothing to transform, and unknown numbers stay as
 * they are.
 */
import type { Enum } from '../model/model.ts';
import { docLines } from './comment.ts';
import { quote } from './scalar.ts';
import type { FileScope } from './scope.ts';
import { exportedConst, exportedType, type Statement } from './statement.ts';

/** `__proto__: 0` in a literal would not be a property. */
const property = (name: string): string => (name === '__proto__' ? "['__proto__']" : name);

export function emitEnum(type: Enum, scope: FileScope): Statement[] {
  const types = () =>
    type.values.map(
      (value) => `${docLines(value, '  ')}  readonly ${property(value.name)}: ${value.number};\n`,
    );
  const values = type.values.map(
    (value) => `${scope.erasable(docLines(value, '  '))}  ${property(value.name)}: ${value.number},\n`,
  );
  const names = new Map<number, string>();
  for (const value of type.values) if (!names.has(value.number)) names.set(value.number, value.name);
  const entries = [...names].map(
    ([number, name]) => `  ${number < 0 ? `[${number}]` : number}: ${quote(name)},\n`,
  );
  const id = type.identifier;
  return [
    exportedConst(
      {
        doc: docLines(type, ''),
        name: id,
        type: scope.erases ? `{\n${types().join('')}}` : '',
        value: `{\n${values.join('')}}`,
        literal: true,
      },
      scope,
    ),
    exportedType(
      scope.closesEnums
        ? `/** One of the values of ${id}. Other numbers from a newer peer are decoded unchanged. */\nexport type ${id} = (typeof ${id})[keyof typeof ${id}];`
        : `/** One of the values of ${id}, or a number that a newer peer knows. */\nexport type ${id} = (typeof ${id})[keyof typeof ${id}] | (number & {});`,
      scope,
    ),
    exportedConst(
      {
        doc: `/** Names of ${id} by number. If a number has aliases, its first name. */\n`,
        name: type.names,
        type: '{ readonly [value: number]: string | undefined }',
        value: `{\n${entries.join('')}}`,
      },
      scope,
    ),
  ];
}
