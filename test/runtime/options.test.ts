/** What users type: options and addresses, with errors that name the option and the way out. */
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
      'unknown, near one',
      () => createServer({ sessionMax: 1 } as object),
      /no option sessionMax; did you mean sessionsMax\?/,
    ],
    [
      'unknown, the beginning of a long one',
      () => createChannel(anywhere, { creds: 1 } as object),
      /did you mean credentials\?/,
    ],
    [
      'unknown, in another case',
      () => createChannel(anywhere, { inflightmax: 1 } as object),
      /did you mean inflightMax\?/,
    ],
    [
      'one level too high',
      () => createChannel(anywhere, { badAnswersMax: 3 } as object),
      /createChannel: badAnswersMax is an option of outlierDetection: outlierDetection: \{ badAnswersMax: … \}/,
    ],
    [
      'no call slots left for streams',
      () => createServer({ inflightMax: 4096 }),
      /createServer: inflightMax \(4096\) and 4 times streamsMax \(64\) are more than 4096 together/,
    ],
    [
      'one stream too many',
      () => createChannel(anywhere, { inflightMax: 2049, streamsMax: 512 }),
      /createChannel: inflightMax \(2049\) and 4 times streamsMax/,
    ],
    [
      'below its range',
      () => createChannel(anywhere, { inflightMax: 0 }),
      /inflightMax: 0 is not an integer from 1 to 4096/,
    ],
    [
      'above its range',
      () => createServer({ messageMaxBytes: 2 ** 32 }),
      /messageMaxBytes: 4294967296 is not an integer from 1024 to 4294967295/,
    ],
    ['not whole', () => createServer({ sessionsMax: 1.5 }), /sessionsMax: 1.5 is not an integer/],
    [
      'a text for a number',
      () => configure({ slotBytes: '8KiB' as never }),
      /^configure: slotBytes: '8KiB' is no number: give an integer from 1024 to 65536$/,
    ],
    [
      'of the process, given to a server',
      () => createServer({ slotBytes: 4096 } as object),
      /^createServer: there is no option slotBytes; it is an option of configure\(\)$/,
    ],
    [
      'of both sides, given to the process',
      () => configure({ inflightMax: 512 } as object),
      /^configure: there is no option inflightMax; it is an option of createChannel\(\) and createServer\(\)$/,
    ],
    [
      'of servers, given to a channel',
      () => createChannel(anywhere, { requestMemory: 'call' } as object),
      /^createChannel: there is no option requestMemory; it is an option of createServer\(\)$/,
    ],
    [
      'of the process, given to a channel',
      () => createChannel(anywhere, { arenaBytes: 4096 } as object),
      /^createChannel: there is no option arenaBytes; it is an option of configure\(\)$/,
    ],
    [
      'not a function',
      () => createServer({ onHandlerError: 'log' as never }),
      /onHandlerError: not a function/,
    ],
    [
      'not a time',
      () => createChannel(anywhere, { timeoutMs: Number.NaN }),
      /timeoutMs: NaN is no time in ms/,
    ],
    ['endless', () => createChannel(anywhere, { timeoutMs: Infinity }), /timeoutMs: Infinity is no time/],
    [
      'too long a text',
      () => createChannel(anywhere, { identity: 'x'.repeat(2000) }),
      /identity: not a text of at most 1024 bytes/,
    ],
    [
      'none of the choices',
      () => configure({ polling: 'never' as never }),
      /polling: never is none of adaptive, busy, event/,
    ],
    ['no object', () => createServer(5 as never), /takes an object with options, and this is 5/],
    ['like no other', () => createServer({ xyzzy: 1 } as object), /^createServer: there is no option xyzzy$/],
    [
      'no function for an in-process server',
      () => createInProcessChannel(createServer() as never),
      /^createInProcessChannel: takes a function, which adds services/,
    ],
    [
      'a default of an unknown method',
      () => createClient(EchoDefinition, createChannel(anywhere), { ecko: {} } as object),
      /no option ecko; did you mean echo\?/,
    ],
    [
      'a default that no client has',
      () => createClient(EchoDefinition, createChannel(anywhere), { '*': { deadline: 5 } as object }),
      /no option deadline/,
    ],
  ])('%s: refused by name', (_, make, message) => {
    expect(make).toThrow(message);
  });

  test('the nearest known name is found by edit distance', () => {
    expect(nearest('maxMesageByte', ['inflightMax', 'messageMaxBytes', 'queueMax'])).toBe('messageMaxBytes');
  });

  test('before it, the one that has the same words, or is called so elsewhere', () => {
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

  test('a channel that is no channel is refused', () => {
    expect(() => createClient(EchoDefinition, {} as never)).toThrow(/takes a channel, of createChannel()/);
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
  ])('%s is refused with the forms that are not', (text, message) => {
    expect(() => parseAddress(text)).toThrow(message);
    expect(() => parseAddress(text)).toThrow(/use 'host:port', '\[ipv6\]:port' or 'unix:\/path'/);
  });
});

describe('configure()', () => {
  // Slots of shm were those of a device for everybody who set anything else, and 9 KiB took 1.4 times as
  // long.
  test('changes nothing that is not given, on any fabric', () => {
    const all = () => (['shm', 'shm-fd', 'tcp', 'verbs'] as const).map(nativeOptions);
    const before = all();
    configure({});
    expect(all()).toMatchObject(before);
  });

  test('slotBytes is for all fabrics', () => {
    expect(nativeOptions('shm').slotBytes).toBe(shmSlotBytes);
    configure({ slotBytes: 4096 });
    expect([nativeOptions('shm').slotBytes, nativeOptions('tcp').slotBytes]).toEqual([4096, 4096]);
  });
});
