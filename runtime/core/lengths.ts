/**
 * The lengths of the `bytes` values of a message that is encoded later, because its call waits: a resizable ArrayBuffer may have another length by then, and
 * what goes out would be no message that the application ever meant. Kept by whatever makes a message wait, on its JS thread; calls that are sent at once
 * never come here. Nothing of the application runs: getters and proxies are passed over, they say what they have when they are asked.
 */
import { isProxy } from 'node:util/types';
import { CodecError } from '../codec/error.ts';
import { type Field, fieldsOf } from '../codec/fields.ts';
import { nestingMax } from '../codec/limits.ts';
import type { MessageType } from '../codec/types.ts';

// biome-ignore lint/suspicious/noExplicitAny: messages of any type wait
type AnyType = MessageType<any, any>;

/** Values and their lengths at the time of the call. */
export class Lengths {
  readonly #typeName: string;
  readonly #values: readonly ArrayBufferView[];
  readonly #bytes: readonly number[];

  constructor(typeName: string, values: readonly ArrayBufferView[]) {
    this.#typeName = typeName;
    this.#values = values;
    this.#bytes = values.map(({ byteLength }) => byteLength);
  }

  /** Throws CodecError when one is not what it was. */
  check(): void {
    if (this.#values.every(({ byteLength }, i) => byteLength === this.#bytes[i])) return;
    const why = 'an ArrayBuffer of it was resized, transferred or detached while it waited to be sent';
    throw new CodecError(this.#typeName, `${why}: keep it as it is until the call has ended, or give a copy`);
  }

  /** Whether any of them may have changed already, unseen. */
  get resizable(): boolean {
    return this.#values.some(({ buffer }) => (buffer as { resizable?: boolean }).resizable === true);
  }
}

/** Of `message`, as it is now; undefined for one without `bytes`. */
export function lengthsOf(type: AnyType, message: unknown): Lengths | undefined {
  const fields = bytesFields(type);
  if (fields?.length === 0) return undefined;
  const values: ArrayBufferView[] = [];
  try {
    if (fields === undefined) addAny(message, values, 0);
    else addFields(type, message, values, 0);
    return values.length === 0 ? undefined : new Lengths(type.typeName, values);
  } catch {
    // Its encoder refuses it, too, and says why.
    return undefined;
  }
}

const known = new WeakMap<AnyType, readonly Field[] | null>();

/** The fields of a type that are or hold `bytes`, undefined for a type without a schema. */
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

/** What is there without asking anybody. */
function own(holder: unknown, key: string | number): unknown {
  if (typeof holder !== 'object' || holder === null || isProxy(holder)) return undefined;
  return Object.getOwnPropertyDescriptor(holder, key)?.value;
}

function forEachOf(holder: unknown, use: (value: unknown) => void): void {
  if (typeof holder !== 'object' || holder === null || isProxy(holder)) return;
  if (Array.isArray(holder)) for (let i = 0; i < holder.length; ++i) use(own(holder, i));
  else for (const key of Object.keys(holder)) use(own(holder, key));
}

/** A cycle: by several ways at once it would take for ever. */
function checkDepth(depth: number): void {
  if (depth > nestingMax) throw new RangeError('nested too deeply');
}

function addFields(type: AnyType, message: unknown, values: ArrayBufferView[], depth: number): void {
  checkDepth(depth);
  for (const field of bytesFields(type) ?? []) {
    const { key, oneof, presence } = field;
    const chosen = oneof === undefined ? message : own(message, oneof);
    if (oneof !== undefined && own(chosen, 'case') !== key) continue;
    const value = own(chosen, oneof === undefined ? key : 'value');
    if (presence !== 'repeated' && presence !== 'map') addValue(field, value, values, depth);
    else forEachOf(value, (each) => addValue(field, each, values, depth));
  }
}

function addValue({ message }: Field, value: unknown, values: ArrayBufferView[], depth: number): void {
  if (ArrayBuffer.isView(value)) values.push(value);
  else if (message !== undefined) addFields(message, value, values, depth + 1);
}

/** Without a schema: plain data of any form. */
function addAny(value: unknown, values: ArrayBufferView[], depth: number): void {
  checkDepth(depth);
  if (ArrayBuffer.isView(value)) values.push(value);
  else forEachOf(value, (each) => addAny(each, values, depth + 1));
}
