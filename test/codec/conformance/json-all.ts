/**
 * Lists all JSON cases of the conformance tests.
 */
import type { JsonCase } from './json-case.ts';
import { mapsAndOneofs, wrappersAndStructs } from './json-composites.ts';
import { enumsAndBooleans, floats, integers, textAndBytes } from './json-scalars.ts';
import { syntax } from './json-syntax.ts';
import { anys, times } from './json-time-any.ts';

export const jsonCases: readonly JsonCase[] = [
  ...syntax,
  ...integers,
  ...floats,
  ...enumsAndBooleans,
  ...textAndBytes,
  ...mapsAndOneofs,
  ...wrappersAndStructs,
  ...times,
  ...anys,
];
