/**
 * Checks the output of commands with `--json` against the schemas of docs/schemas. The tests of the commands
 * use this file.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { expect } from 'vitest';
import { root } from '../house/tree.ts';

const ajv = new Ajv2020({ allErrors: true, strict: true });
const known = new Map<string, ValidateFunction>();

function schemaOf(name: string): ValidateFunction {
  let schema = known.get(name);
  if (schema === undefined) {
    const text = readFileSync(join(root, 'docs/schemas', `${name}.schema.json`), 'utf8');
    schema = ajv.compile(JSON.parse(text) as object);
    known.set(name, schema);
  }
  return schema;
}

/** Fails the test unless the value matches the schema of that command. Returns the value. */
export function expectSchema<T>(name: string, value: T): T {
  const schema = schemaOf(name);
  schema(value);
  expect(schema.errors ?? [], JSON.stringify(value)).toEqual([]);
  return value;
}
