/**
 * Lists JSON inputs, named after the cases of protobuf's conformance suite that test the same thing. Inputs
 * and expected results are ours. Each input is parsed, encoded, decoded and written again. The cases
 * themselves are in json-*.ts.
 */
import type { JsonValue } from 'rdma-rpc/json';

export interface JsonCase {
  readonly name: string;
  readonly level: 'required' | 'recommended';
  readonly input: string;
  /** The JSON that is written for the parsed message, or `refused` when parsing the input must fail. */
  readonly output: JsonValue | 'refused';
  readonly ignoreUnknownFields?: boolean;
}

type Level = JsonCase['level'];
type Row = readonly [name: string, input: string, output?: JsonValue];

/** Without an output, the result must equal the input. */
export const accepted = (level: Level, rows: readonly Row[], ignoreUnknownFields = false): JsonCase[] =>
  rows.map(([name, input, output]) => ({
    name,
    level,
    input,
    output: output === undefined ? (JSON.parse(input) as JsonValue) : output,
    ignoreUnknownFields,
  }));

export const refused = (level: Level, rows: readonly Row[]): JsonCase[] =>
  rows.map(([name, input]) => ({ name, level, input, output: 'refused' }));
