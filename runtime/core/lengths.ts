/**
 * Records the lengths of the `bytes` values of a message that is encoded later because its call waits. A
 * resizable ArrayBuffer may have another length by then, and the call would send a message that the
 * application never meant to send. This file is used when a message has to wait, on the JS thread of its
 * call; calls that are sent at once do not use this file. No code of the application runs here: getters and
 * proxies are skipped, because reading their values would call such code.
 */
import { isProxy } from 'node:util/types';
import { CodecError } from '../codec/error.ts';
import { type Field, fieldsOf } from '../codec/fields.ts';
import { nestingMax } from '../codec/limits.ts';
import type { MessageType } from '../codec/types.ts';

// biome-ignore lint/suspicious/noExplicitAny: messages of any type wait
type AnyType = MessageType<any, any>;

/**
 * A value with its length at the time of the call, linked to the records of the preceding values. The records
 * form a chain rather than an array, because most messages have one such value, and every waiting call has a
 * record.
 */
export class Lengths {
  readonly #typeName: string;
  readonly #value: ArrayBufferView;
  readonly #bytes: number;
  readonly #before: Lengths | undefined;

  /** `typeName` is the type of the message, and `before` the record of the preceding value. */
  constructor(typeName: string, value: ArrayBufferView, before: Lengths | undefined) {
    this.#typeName = typeName;
    this.#value = value;
    this.#bytes = value.byteLength;
    this.#before = before;
  }

  /** Throws CodecError when a length has changed. */
  check(): void {
    for (let each: Lengths | undefined = this; each !== undefined; each = each.#before) {
      if (each.#value.byteLength === each.#bytes) continue;
      const why = 'an ArrayBuffer of it was resized, transferred or detached while it waited to be sent';
      throw new CodecError(
        this.#typeName,
        `${why}: keep it as it is until the call has ended, or give a copy`,
      );
    }
  }

  /** Whether one of the values has a resizable buffer, and may therefore have changed without notice. */
  get resizable(): boolean {
    for (let each: Lengths | undefined = this; each !== undefined; each = each.#before) {
      if ((each.#value.buffer as { resizable?: boolean }).resizable === true) return true;
    }
    return false;
  }
}

/**
 * Returns the current lengths of the `bytes` values of `message`, or undefined when it has no such values.
 */
export function lengthsOf(type: AnyType, message: unknown): Lengths | undefined {
  const fields = bytesFields(type);
  if (fields?.length === 0) return undefined;
  const { typeName } = type;
  try {
    if (fields === undefined) return withAny(typeName, message, undefined, 0);
    return withFields(typeName, fields, message, undefined, 0);
  } catch {
    // The encoder will refuse the message and say why.
    return undefined;
  }
}

const known = new WeakMap<AnyType, readonly Field[] | null>();

/** Returns the fields of a type that are or contain `bytes`, or undefined for a type without a schema. */
function bytesFields(type: AnyType): readonly Field[] | undefined {
  let fields = known.get(type);
  if (fields === undefined) {
    fields = find(type);
    known.set(type, fields);
  }
  return fields ?? undefined;
}

function find(type: AnyType): readonly Field[] | null {
  try {
    return fieldsOf(type).filter((field) => holdsBytes(field, new Set()));
  } catch {
    return null;
  }
}

function holdsBytes(field: Field, seen: Set<AnyType>): boolean {
  const { message } = field;
  if (message === undefined) return field.scalar === 'bytes';
  if (seen.has(message)) return false;
  seen.add(message);
  return fieldsOf(message).some((each) => holdsBytes(each, seen));
}

/** Reads an own property without running code of the application. */
function own(holder: unknown, key: string | number): unknown {
  if (typeof holder !== 'object' || holder === null || isProxy(holder)) return undefined;
  return Object.getOwnPropertyDescriptor(holder, key)?.value;
}

/** Returns the values of an array or a map. */
function valuesOf(holder: unknown): unknown[] {
  if (typeof holder !== 'object' || holder === null || isProxy(holder)) return [];
  if (Array.isArray(holder)) return Array.from(holder.keys(), (index) => own(holder, index));
  return Object.keys(holder).map((key) => own(holder, key));
}

/** Throws for a message that contains itself, because walking through such a message would never end. */
function checkDepth(depth: number): void {
  if (depth > nestingMax) throw new RangeError('nested too deeply');
}

/** Adds the values that `message` has in `fields` to the chain. */
function withFields(
  typeName: string,
  fields: readonly Field[],
  message: unknown,
  before: Lengths | undefined,
  depth: number,
): Lengths | undefined {
  checkDepth(depth);
  let chain = before;
  for (const field of fields) {
    const { key, oneof, presence } = field;
    const chosen = oneof === undefined ? message : own(message, oneof);
    if (oneof !== undefined && own(chosen, 'case') !== key) continue;
    const value = own(chosen, oneof === undefined ? key : 'value');
    if (presence !== 'repeated' && presence !== 'map')
      chain = withValue(typeName, field, value, chain, depth);
    else for (const each of valuesOf(value)) chain = withValue(typeName, field, each, chain, depth);
  }
  return chain;
}

function withValue(
  typeName: string,
  { message }: Field,
  value: unknown,
  before: Lengths | undefined,
  depth: number,
): Lengths | undefined {
  if (ArrayBuffer.isView(value)) return new Lengths(typeName, value, before);
  if (message === undefined) return before;
  return withFields(typeName, bytesFields(message) ?? [], value, before, depth + 1);
}

/** Does the same as `withFields` for plain data of any form without a schema. */
function withAny(
  typeName: string,
  value: unknown,
  before: Lengths | undefined,
  depth: number,
): Lengths | undefined {
  checkDepth(depth);
  if (ArrayBuffer.isView(value)) return new Lengths(typeName, value, before);
  let chain = before;
  for (const each of valuesOf(value)) chain = withAny(typeName, each, chain, depth + 1);
  return chain;
}
