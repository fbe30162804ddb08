/**
 * Parses enums. The parser calls it.
 */
import { EnumDescriptorProto } from '../descriptor/descriptor.rdma.ts';
import type { Token } from './lexer.ts';
import { parseInlineOptions, parseOptionStatement } from './parse-option.ts';
import { parseReserved } from './parse-reserved.ts';
import type { ParseState } from './parse-state.ts';
import type { OptionStatement } from './parsed.ts';

export function parseEnum(
  state: ParseState,
  into: EnumDescriptorProto[],
  listPath: string,
  parent: string,
  start: Token,
  visibility: number | undefined,
): void {
  const { stream } = state;
  stream.expect('enum');
  const path = `${listPath},${into.length}`;
  const name = stream.name("the enum's name");
  const type = EnumDescriptorProto.create({ name: name.text, visibility });
  const scope = parent === '' ? name.text : `${parent}.${name.text}`;
  into.push(type);
  stream.expect('{');
  state.element(path, start, name);
  const options: OptionStatement[] = [];
  state.block(() => {
    if (stream.is('option') && !stream.is('=', 1)) options.push(parseOptionStatement(stream));
    else if (stream.is('reserved') && !stream.is('=', 1))
      parseReserved(state, type, `${path},4`, `${path},5`, { max: 2 ** 31 - 1, open: 0 });
    else enumValue();
  });
  state.options('EnumOptions', type, scope, options);

  function enumValue(): void {
    const valuePath = `${path},2,${type.value.length}`;
    const valueStart = stream.peek();
    const valueName = stream.name("a value's name");
    stream.expect('=');
    const { token, value: number } = stream.integer("the value's number");
    const value: EnumDescriptorProto['value'][number] = { name: valueName.text, number };
    const valueOptions = parseInlineOptions(stream);
    stream.expect(';');
    type.value.push(value);
    state.element(valuePath, valueStart, valueName);
    state.place(`${valuePath},2`, token);
    state.options('EnumValueOptions', value, scope, valueOptions);
  }
}
