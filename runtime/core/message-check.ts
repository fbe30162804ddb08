/**
 * Looks at the first messages that the application sends by a method, a server's responses or a client's
 * requests, for what would be dropped without a word: properties that are no field, and values that only look
 * like a message. A slip like that is in the first messages or in none, so later ones cost a comparison. Made
 * by HandlerTable and for each method of a client.
 */
import { type Field, fieldsOf, fieldValue } from '../codec/fields.ts';
import type { MessageType } from '../codec/types.ts';
import { checkedMessages } from '../limits.ts';
import { slipOf } from './nearest.ts';
import type { Warn } from './warnings.ts';

type Plain = { readonly [key: string]: unknown };

const depthMax = 8;
/** Of a list or map. */
const elementsMax = 4;

function kindOf(value: object): string | undefined {
  if (value instanceof Date) return 'a Date';
  if (value instanceof Map) return 'a Map';
  return value instanceof Set ? 'a Set' : undefined;
}

/** What a property that is no field may have been meant to be. */
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
  // Its keys are none of its properties: it would be an empty map.
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

/** The first thing in a message that would not be sent. */
function mistakeIn(type: MessageType<object>, value: unknown, depth = 0): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || depth > depthMax)
    return undefined;
  const kind = kindOf(value);
  if (kind !== undefined) return `${kind} stands where a ${type.typeName} should: nothing of it is sent`;
  const fields = fieldsOf(type);
  const message = value as Plain;
  for (const key of Object.keys(message)) {
    const given = message[key];
    // Methods of a class, and what other libraries keep in their messages, are not meant to be sent.
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

/** Of a server's method. */
export const responseCheck = (path: string, type: MessageType<unknown, unknown>, warn: Warn): MessageCheck =>
  new MessageCheck(`${path}: in the handler's response`, type, warn);

/** Of a client's. */
export const requestCheck = (path: string, type: MessageType<unknown, unknown>, warn: Warn): MessageCheck =>
  new MessageCheck(`${path}: in the request`, type, warn);

export class MessageCheck {
  /** Messages still to be looked at. */
  left: number = checkedMessages;
  readonly #where: string;
  readonly #type: MessageType<object>;
  readonly #warn: Warn;

  /** `where`: of which method, and which side's. */
  constructor(where: string, type: MessageType<unknown, unknown>, warn: Warn) {
    this.#where = where;
    this.#type = type as MessageType<object>;
    this.#warn = warn;
  }

  /** Warns of the first mistake of the method, and looks no more. Never throws. */
  look(message: unknown): void {
    --this.left;
    let found: string | undefined;
    try {
      found = mistakeIn(this.#type, message);
    } catch {
      // A message without a schema, or one that cannot be looked at: what is wrong with it is found when it
      // is encoded.
      this.left = 0;
      return;
    }
    if (found === undefined) return;
    this.left = 0;
    this.#warn(`${this.#where} ${found}`);
  }
}
