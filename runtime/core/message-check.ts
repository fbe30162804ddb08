/**
 * Checks the first messages that the application sends for each method (a server's responses, a client's
 * requests). It looks for values that would silently be dropped: properties that are not fields, and values
 * that only resemble a message. Such a mistake usually appears in the first messages, so a later message
 * costs only one comparison. A server's HandlerTable makes a check for each method, and so does a client.
 */
import { type Field, fieldsOf, fieldValue } from '../codec/fields.ts';
import type { MessageType } from '../codec/types.ts';
import { checkedMessages } from '../limits.ts';
import { slipOf } from './nearest.ts';
import type { Warn } from './warnings.ts';

type Plain = { readonly [key: string]: unknown };

const depthMax = 8;
/** Number of elements of a list or map that are checked. */
const elementsMax = 4;

function kindOf(value: object): string | undefined {
  if (value instanceof Date) return 'a Date';
  if (value instanceof Map) return 'a Map';
  return value instanceof Set ? 'a Set' : undefined;
}

/** Returns a text that suggests the field that an unknown property may stand for. */
function advice(key: string, fields: readonly Field[]): string {
  const inOneof = fields.find((field) => field.oneof !== undefined && field.key === key);
  if (inOneof !== undefined)
    return `; it is a case of the oneof \`${inOneof.oneof}\`: give { ${inOneof.oneof}: { case: '${key}', value: … } }`;
  const keys = fields.map((field) => field.key);
  const meant = slipOf(key, keys);
  if (meant !== undefined) return `; did you mean \`${meant}\`?`;
  if (keys.length === 0) return '; the message has no fields';
  return `; its fields are ${keys.slice(0, 10).join(', ')}${keys.length > 10 ? ', …' : ''}`;
}

function inElements(field: Field, value: unknown, depth: number): string | undefined {
  // The entries of a Map are not properties, so a Map would be sent as an empty map.
  if (field.presence === 'map' && value instanceof Map) return `\`${field.key}\` is a Map: give an object`;
  if (field.message === undefined || typeof value !== 'object' || value === null) return undefined;
  const all =
    field.presence === 'repeated' || field.presence === 'map'
      ? Object.values(value).slice(0, elementsMax)
      : [value];
  for (const each of all) {
    const found = mistakeIn(field.message, each, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Returns a description of the first part of a message that would not be sent. */
function mistakeIn(type: MessageType<object>, value: unknown, depth = 0): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || depth > depthMax)
    return undefined;
  const kind = kindOf(value);
  if (kind !== undefined) return `${kind} was given instead of a ${type.typeName}: it is not sent`;
  const fields = fieldsOf(type);
  const message = value as Plain;
  for (const key of Object.keys(message)) {
    const given = message[key];
    // Methods of a class, and properties that other libraries keep in their messages, are not meant to be
    // sent.
    if (given === undefined || typeof given === 'function' || key.startsWith('$')) continue;
    if (fields.some((field) => (field.oneof ?? field.key) === key)) continue;
    return `\`${key}\` is no field of ${type.typeName}, and is not sent${advice(key, fields)}`;
  }
  for (const field of fields) {
    const found = inElements(field, fieldValue(message, field), depth);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Returns the check for the responses of a server's method. */
export const responseCheck = (path: string, type: MessageType<unknown, unknown>, warn: Warn): MessageCheck =>
  new MessageCheck(`${path}: in the handler's response`, type, warn);

/** Returns the check for the requests of a client's method. */
export const requestCheck = (path: string, type: MessageType<unknown, unknown>, warn: Warn): MessageCheck =>
  new MessageCheck(`${path}: in the request`, type, warn);

export class MessageCheck {
  /** Number of messages still to be checked. */
  left: number = checkedMessages;
  readonly #where: string;
  readonly #type: MessageType<object>;
  readonly #warn: Warn;

  /** `where` names the method and the side. */
  constructor(where: string, type: MessageType<unknown, unknown>, warn: Warn) {
    this.#where = where;
    this.#type = type as MessageType<object>;
    this.#warn = warn;
  }

  /** Warns of the first mistake of the method, and then stops checking. Never throws. */
  look(message: unknown): void {
    --this.left;
    let found: string | undefined;
    try {
      found = mistakeIn(this.#type, message);
    } catch {
      // The message has no schema, or cannot be inspected. The encoder will report what is wrong with it.
      this.left = 0;
      return;
    }
    if (found === undefined) return;
    this.left = 0;
    this.#warn(`${this.#where} ${found}`);
  }
}
