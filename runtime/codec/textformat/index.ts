/**
 * `rdma-rpc/text`: protobuf's text format, for logs, configuration and tests. An application that does not import it does not bundle it.
 * Errors are CodecErrors: printing they name the field, parsing line and column.
 */
import type { MessageType } from '../types.ts';
import type { Registry } from '../wkt/any.ts';
import { parseMessage } from './parse.ts';
import { Printer } from './print.ts';

export interface TextWriteOptions {
  /** What an Any may hold, which is then written out, and which extensions have names. Without it, an Any is its two fields, and extensions are unknown fields. */
  readonly registry?: Registry;
  /** Fields that the message has kept without knowing them are written too, by number. They cannot be read back. Default false. */
  readonly unknownFields?: boolean;
  /** Everything on one line. Default false: a line for each field, nested ones two spaces further in. */
  readonly oneLine?: boolean;
}

export interface TextReadOptions {
  /** What an Any that is written out may hold, and which extensions may be there. Without it they are errors. */
  readonly registry?: Registry;
}

/** The message in text format, fields by number, a line end behind each. Throws CodecError for what does not fit its field, and for nesting over 100. */
export function toText<T, Init>(
  type: MessageType<T, Init>,
  message: Init,
  options: TextWriteOptions = {},
): string {
  return new Printer(options).print(type as MessageType<object>, message as object);
}

/** The message that the text stands for. Throws CodecError with line and column for anything that is not of its form, and for nesting over 100. */
export function fromText<T, Init>(
  type: MessageType<T, Init>,
  text: string,
  options: TextReadOptions = {},
): T {
  return parseMessage(type as MessageType<object>, text, options.registry) as T;
}
