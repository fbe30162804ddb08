/**
 * `rdma-rpc/text`: protobuf's text format, for logs, configuration and tests. An application that does not
 * import it does not bundle it. Errors are CodecErrors: printing they name the field, parsing line and
 * column.
 */
import type { MessageType } from '../types.ts';
import type { TextReadOptions, TextWriteOptions } from './options.ts';
import { parseMessage } from './parse.ts';
import { Printer } from './print.ts';

export type { TextReadOptions, TextWriteOptions } from './options.ts';

/**
 * The message in text format, fields by number, a line end behind each. Throws CodecError for what does not
 * fit its field, and for nesting over 100.
 */
export function toText<T, Init>(
  type: MessageType<T, Init>,
  message: Init,
  options: TextWriteOptions = {},
): string {
  return new Printer(options).print(type as MessageType<object>, message as object);
}

/**
 * The message that the text stands for. Throws CodecError with line and column for anything that is not of
 * its form, and for nesting over 100.
 */
export function fromText<T, Init>(
  type: MessageType<T, Init>,
  text: string,
  options: TextReadOptions = {},
): T {
  return parseMessage(type as MessageType<object>, text, options.registry) as T;
}
