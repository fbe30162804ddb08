/** FieldMask as a single string of camelCase paths. well-known.ts calls these functions. */
import { CodecError, mismatch } from '../error.ts';
import type { FieldMask } from '../google/protobuf/field_mask.rdma.ts';

const camel = (path: string): string =>
  path.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
const snake = (path: string): string => path.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

export function fieldMaskToJson(message: object, path: string): string {
  const { paths = [] } = message as { paths?: readonly unknown[] };
  const texts = paths.map((each) => {
    if (typeof each !== 'string') return mismatch(`${path}.paths`, each, 'a string');
    const text = camel(each);
    if (snake(text) !== each || /[,_]/.test(text))
      throw new CodecError(path, `path ${JSON.stringify(each)} is not in snake_case and has no form in JSON`);
    return text;
  });
  return texts.join(',');
}

export function fieldMaskFromJson(json: unknown, path: string): FieldMask {
  if (typeof json !== 'string') mismatch(path, json, 'a string of paths');
  if (json === '') return { paths: [] };
  const paths = json.split(',').map((text) => {
    if (text === '' || text.includes('_')) mismatch(path, text, 'a path in camelCase');
    return snake(text);
  });
  return { paths };
}
