/**
 * Every function that the public interface lets an application give is in a test of whose
 * AsyncLocalStorage it sees. A new one must get a site there, or a reason here why it needs none.
 */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const read = (file: string): string => readFileSync(new URL(file, import.meta.url), 'utf8');
const table = ['context-sites.ts', 'context-sites-of-streams.ts', 'async-context.test.ts'].map(read).join('');
const shared = read('async-context-shared.test.ts');
const workers = ['process/worker-errors.test.ts', 'process/worker-drained.test.ts'].map(read).join('');

/** What is given, by the name that test/api/public-api.txt has for it; where it is tested. */
const tested: Readonly<Record<string, readonly [tests: string, name: string]>> = {
  Authenticate: [table, '  authenticate: {'],
  AuthorizeFunction: [table, '  authorize: {'],
  onHeader: [table, '  onHeader: callback'],
  onTrailer: [table, '  onTrailer: callback'],
  ChannelStateListener: [table, "a listener of channel.on('state')"],
  CredentialsSource: [table, 'credentials of calls'],
  Interceptor: [table, 'an interceptor of the server, for two streams'],
  OnSession: [table, '  onSession: {'],
  QuotasOf: [table, '  quotas: {'],
  resolve: [table, 'a resolver and credentials of sessions'],
  watch: [table, 'a resolver and credentials of sessions'],
  onShutdown: [table, 'a listener of onShutdown'],
  onDenied: [table, '  onDenied: {'],
  onHandlerError: [table, '  onHandlerError: {'],
  log: [table, 'log of a server'],
  attributes: [table, 'telemetry of a client'],
  statusOf: [table, 'what a probe of health asks'],
  checkServerIdentity: [shared, 'functions called by TLS'],
  checkClientIdentity: [shared, 'functions called by TLS'],
  TlsSource: [shared, 'functions called by TLS'],
  // Of peersOf().
  on: [shared, 'functions around calls of a server to its clients'],
  once: [shared, 'functions around calls of a server to its clients'],
  onWorkerError: [workers, 'onWorkerError sees no store'],
  onDrained: [workers, 'sees no store of the code that called listenInWorker'],
};

/** Never called, or called before the function that takes them returns. */
const atOnce = ['Next', 'off', 'createInProcessChannel', 'tlsFiles', 'messages'];
/** Of this package, or for generated code. */
const ours = [
  'requestSerialize',
  'requestDeserialize',
  'responseSerialize',
  'responseDeserialize',
  'fileDescriptor',
  'generatedType',
  'convert',
  'GrpcJsHandler',
  'server',
  'channel',
  'isTrouble',
];

test('every function that can be given', () => {
  const functions = read('../api/public-api.txt')
    .split('\n')
    .filter((line) => /=>|: (Log|OnHandlerError);|^ {2}(resolve|statusOf)\(/.test(line))
    // Views of bytes.
    .filter((line) => !/\(bytes: Uint8Array\) => \w+Array;/.test(line))
    .map(
      (line) => /^(?:type|function|const|\} \| undefined,)?\s*(?:readonly |get )?\[?(\w+)/.exec(line)![1]!,
    );
  expect(functions.length).toBeGreaterThan(30);
  expect(
    [...new Set(functions)].filter((name) => ![...atOnce, ...ours, ...Object.keys(tested)].includes(name)),
  ).toEqual([]);
});

test.each(Object.entries(tested))('%s is in a table', (_, [tests, name]) => {
  expect(tests).toContain(name);
});
