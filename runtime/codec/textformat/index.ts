/**
 * `rdma-rpc/text`: protobuf's text format, for logs, configuration and tests. It is bundled only into
 * applications that import it. Errors are CodecErrors. They name the field when printing, and line and column
 * when parsing.
 */
import type { MessageType } from '../types.ts';
import type { TextReadOptions, TextWriteOptions } from './options.ts';
import { parseMessage } from './parse.ts';
import { Printer } from './print.ts';

export type { TextReadOptions, TextWriteOptions } from './options.ts';

/**
 * Returns the message in text format. Fields are ordered by number, and a line end follows each. Throws
 * CodecError for a value that does not fit its field, and for nesting over 100.
 */
export function toText<T, Init>(
  type: MessageType<T, Init>,
  message: Init,
  options: TextWriteOptions = {},
): string {
  return new Printer(options).print(type as MessageType<object>, message as object);
}

/**
 * Returns the message that the text describes. Throws CodecError with line and column for invalid text, and
 * for nesting over 100.
 */
export function fromText<T, Init>(
  type: MessageType<T, Init>,
  text: string,
  options: TextReadOptions = {},
): T {
  return parseMessage(type as MessageType<object>, text, options.registry) as T;
}
