/**
 * Parses `reserved 2, 9 to 11;` and `reserved "foo";` of messages and enums. The parser calls it.
 */
import type { ParseState } from './parse-state.ts';

interface Reserving {
  readonly reservedRange: { start?: number | undefined; end?: number | undefined }[];
  readonly reservedName: string[];
}

/**
 * Parses a `reserved` declaration. `path` is the path of the ranges, and `namesPath` the path of the names.
 * `open` is 1 if the end of a range is the first number behind it (messages), and 0 if it is the last number
 * inside it (enums).
 */
export function parseReserved(
  state: ParseState,
  into: Reserving,
  path: string,
  namesPath: string,
  { max, open }: { max: number; open: 0 | 1 },
): void {
  const { stream } = state;
  stream.next();
  const { kind } = stream.peek();
  if (kind === 'string' || kind === 'name') {
    const names = kind === 'name';
    if (names !== state.isEdition)
      stream.fail(
        stream.peek(),
        names
          ? 'reserved names are written in quotes before edition 2023'
          : 'reserved names are written without quotes since edition 2023',
      );
    do {
      const token = stream.peek();
      state.place(`${namesPath},${into.reservedName.length}`, token);
      into.reservedName.push(
        names ? stream.name('a name').text : stream.string('a name in quotes').bytes.toString(),
      );
    } while (stream.accept(','));
  } else {
    do {
      const { token, value: start } = stream.integer('a number or a name');
      let end = start;
      if (stream.accept('to')) end = stream.accept('max') ? max : stream.integer('a number or max').value;
      if (end < start) stream.fail(token, `the range ${start} to ${end} ends before it starts`);
      state.place(`${path},${into.reservedRange.length}`, token);
      into.reservedRange.push({ start, end: end + open });
    } while (stream.accept(','));
  }
  stream.expect(';');
}
