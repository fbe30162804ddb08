/** Tests options and addresses that users type, with errors that name the option and the remedy. */
import { describe, expect, test } from 'vitest';
import { nativeOptions } from '../../runtime/boundary/contexts.ts';
import { formatAddress, parseAddress } from '../../runtime/control/socket/address.ts';
import { nearest } from '../../runtime/core/nearest.ts';
import {
  configure,
  createChannel,
  createClient,
  createInProcessChannel,
  createServer,
} from '../../runtime/index.ts';
import { shmSlotBytes } from '../../runtime/limits.ts';
import { EchoDefinition } from './gen/echo.rdma.ts';

const anywhere = 'unix:/tmp/nowhere.sock';

describe('options', () => {
  test.each<[string, () => unknown, RegExp]>([
    [
      'an unknown name near a known one',
      () => createServer({ sessionMax: 1 } as object),
      /no option sessionMax; did you mean sessionsMax\?/,
    ],
    [
      'the beginning of a long name',
      () => createChannel(anywhere, { creds: 1 } as object),
      /did you mean credentials\?/,
    ],
    [
      'a name in another case',
      () => createChannel(anywhere, { inflightmax: 1 } as object),
      /did you mean inflightMax\?/,
    ],
    [
      'an option one level too high',
      () => createChannel(anywhere, { badAnswersMax: 3 } as object),
      /createChannel: badAnswersMax belongs inside the option outlierDetection: write outlierDetection: \{ badAnswersMax: … \}/,
    ],
    [
      'no call slots left for streams',
      () => createServer({ inflightMax: 4096 }),
      /createServer: inflightMax \(4096\) and 4 times streamsMax \(64\) are more than 4096 together/,
    ],
    [
      'more streams than call slots',
      () => createChannel(anywhere, { inflightMax: 2049, streamsMax: 512 }),
      /createChannel: inflightMax \(2049\) and 4 times streamsMax/,
    ],
    [
      'a value below its range',
      () => createChannel(anywhere, { inflightMax: 0 }),
      /inflightMax: 0 is not an integer from 1 to 4096/,
    ],
    [
      'a value above its range',
      () => createServer({ messageMaxBytes: 2 ** 32 }),
      /messageMaxBytes: 4294967296 is not an integer from 1024 to 4294967295/,
    ],
    [
      'a fraction for an integer',
      () => createServer({ sessionsMax: 1.5 }),
      /sessionsMax: 1.5 is not an integer/,
    ],
    [
      'a text for a number',
      () => configure({ slotBytes: '8KiB' as never }),
      /^configure: slotBytes: '8KiB' is a string, not a number; give an integer from 1024 to 65536$/,
    ],
    [
      'an option of the process, given to a server',
      () => createServer({ slotBytes: 4096 } as object),
      /^createServer: there is no option slotBytes; it is an option of configure\(\)$/,
    ],
    [
      'an option of both sides, given to the process',
      () => configure({ inflightMax: 512 } as object),
      /^configure: there is no option inflightMax; it is an option of createChannel\(\) and createServer\(\)$/,
    ],
    [
      'an option of servers, given to a channel',
      () => createChannel(anywhere, { requestMemory: 'call' } as object),
      /^createChannel: there is no option requestMemory; it is an option of createServer\(\)$/,
    ],
    [
      'an option of the process, given to a channel',
      () => createChannel(anywhere, { arenaBytes: 4096 } as object),
      /^createChannel: there is no option arenaBytes; it is an option of configure\(\)$/,
    ],
    [
      'a value that is not a function',
      () => createServer({ onHandlerError: 'log' as never }),
      /onHandlerError: must be a function/,
    ],
    [
      'a value that is not a time',
      () => createChannel(anywhere, { timeoutMs: Number.NaN }),
      /timeoutMs: NaN is not a time in ms/,
    ],
    [
      'an infinite time',
      () => createChannel(anywhere, { timeoutMs: Infinity }),
      /timeoutMs: Infinity is not a time in ms/,
    ],
    [
      'a text that is too long',
      () => createChannel(anywhere, { identity: 'x'.repeat(2000) }),
      /identity: must be a string of at most 1024 bytes/,
    ],
    [
      'a value outside of the choices',
      () => configure({ polling: 'never' as never }),
      /polling: never is not allowed; use one of adaptive, busy, event/,
    ],
    [
      'a number instead of options',
      () => createServer(5 as never),
      /must be an object with options, but is 5/,
    ],
    [
      'a name that is like no other',
      () => createServer({ xyzzy: 1 } as object),
      /^createServer: there is no option xyzzy$/,
    ],
    [
      'a value that is not a function, for an in-process server',
      () => createInProcessChannel(createServer() as never),
      /^createInProcessChannel: give a function that adds services/,
    ],
    [
      'a default of an unknown method',
      () => createClient(EchoDefinition, createChannel(anywhere), { ecko: {} } as object),
      /no option ecko; did you mean echo\?/,
    ],
    [
      'a default for an option that clients do not have',
      () => createClient(EchoDefinition, createChannel(anywhere), { '*': { deadline: 5 } as object }),
      /no option deadline/,
    ],
  ])('%s is refused by name', (_, make, message) => {
    expect(make).toThrow(message);
  });

  test('the nearest known name is found by edit distance', () => {
    expect(nearest('maxMesageByte', ['inflightMax', 'messageMaxBytes', 'queueMax'])).toBe('messageMaxBytes');
  });

  test('a name with the same words, or the name of another library, comes before the nearest one', () => {
    expect(nearest('maxTimeoutMs', ['defaultTimeoutMs', 'timeoutMaxMs'])).toBe('timeoutMaxMs');
    expect(nearest('max_timeout_ms', ['defaultTimeoutMs', 'timeoutMaxMs'])).toBe('timeoutMaxMs');
    const options = ['timeoutMs', 'metadata', 'onHeader', 'hedging', 'values', 'context'];
    expect(nearest('deadline', options)).toBe('timeoutMs');
    expect(nearest('headers', options)).toBe('metadata');
    expect(nearest('contextValues', options)).toBe('values');
  });

  test('a name that is like no other gets no suggestion', () => {
    expect(nearest('deadline', ['hedging', 'inflightMax'])).toBeUndefined();
    expect(nearest('servername', ['cert', 'key', 'ca', 'crl', 'psk'])).toBeUndefined();
    expect(nearest('minVersion', ['cert', 'requestCert', 'checkClientIdentity'])).toBeUndefined();
  });

  test('a value that is not a channel is refused', () => {
    expect(() => createClient(EchoDefinition, {} as never)).toThrow(/give a channel that createChannel()/);
  });
});

describe('addresses', () => {
  test.each([
    ['localhost:80', { kind: 'tcp', host: 'localhost', port: 80 }],
    ['127.0.0.1:0', { kind: 'tcp', host: '127.0.0.1', port: 0 }],
    ['[::1]:8080', { kind: 'tcp', host: '::1', port: 8080 }],
    ['[fe80::1%eth0]:1', { kind: 'tcp', host: 'fe80::1%eth0', port: 1 }],
    ['unix:/run/a.sock', { kind: 'unix', path: '/run/a.sock' }],
  ])('%s is understood and written back', (text, address) => {
    expect(parseAddress(text)).toEqual(address);
    expect(formatAddress(parseAddress(text))).toBe(text);
  });

  test.each([
    ['', /not understood/],
    ['localhost', /not understood/],
    ['::1:80', /not understood/],
    ['host:65536', /port is above 65535/],
    ['host:-1', /not understood/],
    ['unix:', /no path/],
    [`unix:/${'x'.repeat(107)}`, /longer than 107 bytes/],
    ['unix:/a\0b', /zero byte/],
  ])('%s is refused, and the error names the valid forms', (text, message) => {
    expect(() => parseAddress(text)).toThrow(message);
    expect(() => parseAddress(text)).toThrow(/use 'host:port', '\[ipv6\]:port' or 'unix:\/path'/);
  });
});

describe('configure()', () => {
  // This tests for a regression: any configured option made shm use the slot sizes of a device, and 9 KiB
  // took 1.4 times as long.
  test('changes no option that is not given, on any fabric', () => {
    const all = () => (['shm', 'shm-fd', 'tcp', 'verbs'] as const).map(nativeOptions);
    const before = all();
    configure({});
    expect(all()).toMatchObject(before);
  });

  test('sets slotBytes for all fabrics', () => {
    expect(nativeOptions('shm').slotBytes).toBe(shmSlotBytes);
    configure({ slotBytes: 4096 });
    expect([nativeOptions('shm').slotBytes, nativeOptions('tcp').slotBytes]).toEqual([4096, 4096]);
  });
});
