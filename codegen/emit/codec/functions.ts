/**
 * Emits the four functions of a message's codec. They are private to the file. The const that holds these
 * functions uses them, and so do messages that contain this message.
 */
import type { Message } from '../../model/model.ts';
import { quote } from '../scalar.ts';
import { type FileScope, type Part, parts } from '../scope.ts';
import { internal, type Statement } from '../statement.ts';
import { emitBound } from './bound.ts';
import { emitCreate } from './create.ts';
import { emitDecode } from './decode.ts';
import { emitEncode } from './encode.ts';
import { emitFields } from './fields.ts';

export function emitFunctions(message: Message, scope: FileScope): Statement[] {
  return [emitCreate, emitBound, emitEncode, emitDecode].map((emit) => internal(emit(message, scope)));
}

/** Returns the arguments of `$.generatedType`. */
export function codecOf(message: Message, typeName: string, scope: FileScope): string {
  const functions = parts.map((part: Part) => scope.call(message, part));
  return `${quote(typeName)}, ${functions.join(', ')}, ${emitFields(message, scope)}`;
}
