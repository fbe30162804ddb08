/**
 * Lists fields in the order in which they are written (by number). Adjacent fields of the same oneof are
 * handled together, so that one switch replaces many tests.
 */
import type { Field, Message, Oneof } from '../../model/model.ts';

export interface Run {
  readonly oneof: Oneof | undefined;
  readonly fields: Field[];
}

export function fieldRuns(message: Message): Run[] {
  const runs: Run[] = [];
  for (const field of message.fields) {
    const last = runs.at(-1);
    if (last !== undefined && last.oneof === field.oneof) last.fields.push(field);
    else runs.push({ oneof: field.oneof, fields: [field] });
  }
  return runs;
}
