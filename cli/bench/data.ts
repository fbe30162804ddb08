/**
 * The requests of `rdma-rpc bench`. They come from JSON on the command line or in a file. They are made once,
 * or again for each call if the text is a template.
 */
import { readFile } from 'node:fs/promises';
import { text as allOf } from 'node:stream/consumers';
import type { JsonValue } from '#protobuf';
import { jsonTexts, type RequestForm, requestOf } from '../server/request.ts';
import { stdinText } from '../server/stdin.ts';
import { type CallNumbers, templateOf } from './template.ts';

/**
 * Makes the messages of one call, which are a single message or the messages of its stream. Throws when a
 * template makes an invalid message.
 */
export type Requests = (numbers: CallNumbers) => readonly Uint8Array[];

export interface DataFlags {
  readonly data: string;
  readonly dataFile?: string;
}

/** Throws an Error with the reason when the file cannot be read. */
export async function dataText({ data, dataFile }: DataFlags): Promise<string> {
  if (dataFile === '-' || (dataFile === undefined && data === '@')) return await allOf(stdinText());
  if (dataFile === undefined) return data;
  try {
    return await readFile(dataFile, 'utf8');
  } catch (error) {
    throw new Error(`${dataFile} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}

/** Messages whose JSON may be an array. */
const arrays = new Set(['google.protobuf.ListValue', 'google.protobuf.Value', 'google.protobuf.FieldMask']);

const noRequest = 'the data contains no request: give -d or --data-file a JSON object, or an array of them';

/** An array means several messages. Several values one after another have the same effect. */
function messages(text: string, { input }: RequestForm): JsonValue[] {
  let json: JsonValue;
  try {
    json = JSON.parse(text) as JsonValue;
  } catch (error) {
    throw new Error(`the data of -d or --data-file is not JSON: ${(error as Error).message}`);
  }
  return Array.isArray(json) && !arrays.has(input.typeName) ? json : [json];
}

/**
 * With `stream`, each call sends all messages; otherwise each call sends the next message. Throws an Error
 * for data that is not a request of that type.
 */
export async function requestsOf(text: string, form: RequestForm, stream: boolean): Promise<Requests> {
  const texts: string[] = [];
  for await (const each of jsonTexts([text])) texts.push(each.text);
  const makes = texts.map((each) => templateOf(each));
  if (makes.every((make) => make === undefined)) {
    const all = texts.flatMap((each) => messages(each, form)).map((json) => requestOf(json, form));
    if (all.length === 0 && !stream) throw new Error(noRequest);
    const single = all.map((each) => [each]);
    return stream ? () => all : ({ call }) => single[call % single.length]!;
  }
  const make = (i: number, numbers: CallNumbers): Uint8Array[] =>
    messages(makes[i]?.(numbers) ?? texts[i]!, form).map((json) => requestOf(json, form));
  const requests: Requests = stream
    ? (numbers) => texts.flatMap((_, i) => make(i, numbers))
    : (numbers) => {
        const all = make(numbers.call % texts.length, numbers);
        if (all.length === 0) throw new Error(noRequest);
        return [all[Math.floor(numbers.call / texts.length) % all.length]!];
      };
  requests({ call: 0, worker: 0 });
  return requests;
}
