/**
 * Reads requests from the command line: JSON values, one after another, as messages of a type. `rdma-rpc
 * call` uses this file.
 */
import {
  type DescField,
  type DescMessage,
  type FileRegistry,
  fromJson,
  type JsonValue,
  toBinary,
} from '#protobuf';
import { suggestionOrList } from './schema/suggest.ts';

/** The ways to read a request. */
export interface RequestForm {
  readonly input: DescMessage;
  readonly registry: FileRegistry;
  /** Ignores members of the JSON that are not fields. */
  readonly ignoreUnknownFields: boolean;
}

/**
 * Yields JSON values as they arrive. A value may have several lines, and a line may have several values.
 * `line` is the line on which the value begins, counted from 1.
 */
export async function* jsonTexts(
  chunks: AsyncIterable<string> | Iterable<string>,
): AsyncGenerator<{ text: string; line: number }> {
  let text = '';
  let line = 1;
  let start = 1;
  let depth = 0;
  let inString = false;
  let escaped = false;
  for await (const chunk of chunks) {
    for (const character of chunk) {
      const space = /\s/.test(character);
      if (!inString && depth === 0 && space && text !== '') {
        yield { text, line: start };
        text = '';
      }
      if (character === '\n') ++line;
      if (text === '' && space) continue;
      if (text === '') start = line;
      text += character;
      if (inString) {
        inString = escaped || character !== '"';
        escaped = !escaped && character === '\\';
        continue;
      }
      if (character === '"') inString = true;
      else if (character === '{' || character === '[') ++depth;
      else if (character === '}' || character === ']') --depth;
      if (depth > 0 || inString || !/["}\]]/.test(character)) continue;
      yield { text, line: start };
      [text, depth] = ['', 0];
    }
  }
  if (text !== '') yield { text, line: start };
}

function parsed(text: string, line: number): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    const where = line === 1 ? 'the request' : `line ${line} of the request`;
    throw new Error(`${where} is not JSON: ${(error as Error).message}`);
  }
}

/** Returns the encoded message. Throws an Error that says what is wrong, and what was probably meant. */
export function requestOf(
  json: JsonValue,
  { input, registry, ignoreUnknownFields }: RequestForm,
): Uint8Array {
  if (!ignoreUnknownFields) checkNames(input, json, registry);
  return toBinary(input, fromJson(input, json, { registry, ignoreUnknownFields }));
}

/** Yields encoded messages, each as soon as its text is complete. */
export async function* requestsOf(
  chunks: AsyncIterable<string> | Iterable<string>,
  form: RequestForm,
): AsyncGenerator<Uint8Array> {
  for await (const { text, line } of jsonTexts(chunks)) yield requestOf(parsed(text, line), form);
}

type JsonObject = { readonly [key: string]: JsonValue };
const isObject = (json: JsonValue | undefined): json is JsonObject =>
  typeof json === 'object' && json !== null && !Array.isArray(json);

/** Returns whether messages of the type have a special form in JSON. */
const isWellKnown = ({ typeName }: DescMessage): boolean => typeName.startsWith('google.protobuf.');

/** Checks the names of fields and of enum values. The JSON reader reports all other errors well. */
function checkNames(desc: DescMessage, json: JsonValue | undefined, registry: FileRegistry): void {
  if (!isObject(json) || isWellKnown(desc)) return;
  for (const [key, value] of Object.entries(json)) {
    const field = desc.fields.find(({ name, jsonName }) => name === key || jsonName === key);
    if (field !== undefined) checkField(field, value, registry);
    else if (!(key.startsWith('[') && registry.getExtension(key.slice(1, -1))?.extendee === desc)) {
      const names = desc.fields.map(({ jsonName }) => jsonName);
      throw new Error(
        `${desc.typeName}: unknown field ${JSON.stringify(key)}${suggestionOrList(key, names)}`,
      );
    }
  }
}

function checkField(field: DescField, json: JsonValue, registry: FileRegistry): void {
  const many = field.fieldKind === 'list' || field.fieldKind === 'map';
  const values = !many ? [json] : Array.isArray(json) ? json : isObject(json) ? Object.values(json) : [];
  for (const value of values) {
    if (field.message !== undefined) checkNames(field.message, value, registry);
    const { enum: declared } = field;
    if (declared === undefined || typeof value !== 'string') continue;
    const names = declared.values.map(({ name }) => name);
    const known = declared.values.some(({ name, jsonName }) => name === value || jsonName === value);
    if (!known && !/^-?\d+$/.test(value))
      throw new Error(
        `${field.parent.typeName}.${field.name}: ${declared.typeName} has no value ${JSON.stringify(value)}${suggestionOrList(value, names)}`,
      );
  }
}
