/**
 * Compares our codec with protoc, which reads our encoding and writes it again through its text format. We
 * decode protoc's output to the same message. The test uses a few random messages of every type of the
 * corpus, because each message takes two processes.
 */
import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { equals } from 'rdma-rpc/codec';
import { describe, expect, test } from 'vitest';
import { needs } from '../needs.ts';
import { type AnyMessage, corpus, initOf, protoDirectory } from './corpus.ts';

const seed = 20_261_123;
const samples = 3;
/**
 * The messages of the corpus by package. protoc 3.21 refuses the file with the hostile names, because its
 * service uses a message called `string`.
 */
const files: Readonly<Record<string, string>> = {
  'corpus.conformance': 'conformance.proto',
  'corpus.documented': 'documented.proto',
  'corpus.everything': 'everything.proto',
  'corpus.well_known': 'well_known.proto',
};
const fileOf = (typeName: string) => files[typeName.split('.').slice(0, 2).join('.')];
const known = corpus.filter(({ name }) => fileOf(name) !== undefined);

function protoc(what: '--encode' | '--decode', typeName: string, input: Uint8Array): Uint8Array {
  const flags = [`${what}=${typeName}`, '-I', protoDirectory, fileOf(typeName) ?? ''];
  return execFileSync('protoc', flags, { input, stdio: ['pipe', 'pipe', 'pipe'] });
}

needs('protoc');

describe.each(known.map((pair) => [pair.name, pair] as const))('%s', (name, { ours, theirs }) => {
  test('a message is unchanged after protoc has read and written it', () => {
    for (const init of fc.sample<AnyMessage>(initOf(theirs, 1), { seed, numRuns: samples })) {
      const message = ours.decode(ours.encode(init));
      const text = protoc('--decode', name, ours.encode(message));
      const again = ours.decode(protoc('--encode', name, text));
      expect(equals(ours, again, message), text.toString()).toBe(true);
    }
  });
});
