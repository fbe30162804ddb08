/**
 * Tests that every function that an application can pass to the public interface has a test of the
 * AsyncLocalStorage store that it sees. A new function needs such a test, or a reason here why it needs no
 * test.
 */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const read = (file: string): string => readFileSync(new URL(file, import.meta.url), 'utf8');
const table = ['context-sites.ts', 'context-sites-of-streams.ts', 'async-context.test.ts'].map(read).join('');
const shared = read('async-context-shared.test.ts');
const sockets = read('../socket/async-context.test.ts');
const discovery = read('../discovery/kubernetes.test.ts');
const memory = read('../remote-memory/operations.test.ts');
const workers = ['process/worker-errors.test.ts', 'process/worker-drained.test.ts'].map(read).join('');

/** The functions by their names in test/api/public-api.txt, with the tests that have their sites. */
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
  // The functions of peersOf().
  on: [shared, 'functions around calls of a server to its clients'],
  once: [shared, 'functions around calls of a server to its clients'],
  addSockets: [sockets, 'listeners see their own user or no store'],
  buffer: [sockets, 'buffer: () => {'],
  connect: [sockets, ': connect`'],
  createServer: [sockets, 'server: connection'],
  listen: [sockets, 'server: listening'],
  getConnections: [sockets, 'server: getConnections'],
  close: [sockets, 'server: closed'],
  setTimeout: [sockets, 'timeout`'],
  onWritten: [memory, 'onWritten runs in the root context'],
  doors: [discovery, 'the function for doors sees no store'],
  onWorkerError: [workers, 'onWorkerError sees no store'],
  onDrained: [workers, 'sees no store of the code that called listenInWorker'],
};

/** These functions are never called, or only called before the function that takes them returns. */
const atOnce = ['Next', 'off', 'createInProcessChannel', 'tlsFiles', 'messages'];
/**
 * An interceptor of this package calls these functions. The functions see the store that an `Interceptor`
 * sees.
 */
const inInterceptors = ['reportLoad'];
/** Only this package or generated code calls these functions. */
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

test('every function that can be passed is listed', () => {
  const functions = read('../api/public-api.txt')
    .split('\n')
    .filter((line) => /=>|: (Log|OnHandlerError);|^ {2}(resolve|statusOf)\(/.test(line))
    // These functions return views of bytes.
    .filter((line) => !/\(bytes: Uint8Array\) => \w+Array;/.test(line))
    .map(
      (line) => /^(?:type|function|const|\} \| undefined,)?\s*(?:readonly |get )?\[?(\w+)/.exec(line)![1]!,
    );
  expect(functions.length).toBeGreaterThan(30);
  expect(
    [...new Set(functions)].filter(
      (name) => ![...atOnce, ...inInterceptors, ...ours, ...Object.keys(tested)].includes(name),
    ),
  ).toEqual([]);
});

test.each(Object.entries(tested))('%s is in a table', (_, [tests, name]) => {
  expect(tests).toContain(name);
});
