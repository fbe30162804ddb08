/**
 * Compares the tables of the pages with the sources: options, limits, counters, status codes and error texts.
 */
import { expect, test } from 'vitest';
import { channelRules, outlierRules } from '../../runtime/client/channel-options.ts';
import * as connectionLimits from '../../runtime/client/connections/limits.ts';
import { consistentHashRules, loadReportRules } from '../../runtime/client/connections/policies.ts';
import { subsetRules } from '../../runtime/client/connections/subset-id.ts';
import { runtimeRules } from '../../runtime/control/configure.ts';
import { verbsRules } from '../../runtime/control/fabric-options.ts';
import type { OptionRule, OptionRules } from '../../runtime/core/options.ts';
import { Status, stats } from '../../runtime/index.ts';
import * as limits from '../../runtime/limits.ts';
import { serverRules } from '../../runtime/server/server-options.ts';
import * as workerLimits from '../../runtime/workers/limits.ts';
import { projectFiles, read } from '../house/tree.ts';
import { documents, namesIn, pageOf, tableOf } from './document.ts';

const units = { GiB: 2 ** 30, MiB: 2 ** 20, KiB: 2 ** 10 };

/**
 * Formats a number as the pages write it: sizes in the largest unit that divides them, and times with their
 * unit.
 */
function shown(name: string, value: number): string {
  const plain = value.toLocaleString('en');
  if (name.endsWith('Ms')) return `${plain} ms`;
  if (!name.endsWith('Bytes') || value === 0) return plain;
  for (const [unit, bytes] of Object.entries(units)) {
    if (value % bytes === 0) return `${(value / bytes).toLocaleString('en')} ${unit}`;
    if ((value + 1) % bytes === 0) return `${((value + 1) / bytes).toLocaleString('en')} ${unit} - 1`;
  }
  return plain;
}

/**
 * Returns default and range as the table has them. An undefined default is described in words, which are not
 * compared.
 */
function cellsOf(name: string, rule: OptionRule): [string | undefined, string] {
  switch (rule.kind) {
    case 'integer': {
      const { min, max, default: value } = rule.range;
      return [
        value === undefined ? undefined : shown(name, value),
        `${shown(name, min)} to ${shown(name, max)}`,
      ];
    }
    case 'number':
      return [String(rule.range.default), `${rule.range.min} to ${rule.range.max.toLocaleString('en')}`];
    case 'time':
      return ['none', 'time'];
    case 'text':
      return [
        rule.default.replace(/^pid \d+$/, '`pid` and its number') || undefined,
        `text of at most ${shown('Bytes', rule.maxBytes)}`,
      ];
    case 'choice':
      return [`\`${rule.default}\``, rule.values.map((value) => `\`${value}\``).join(', ')];
    case 'choices':
      return [
        `\`${rule.default}\``,
        `\`${rule.default}\`, ${rule.values.map((value) => `\`${value}\``).join(', ')}, or a list`,
      ];
    case 'source':
      return [undefined, 'object or function'];
    case 'config':
      return [undefined, 'object or path'];
    case 'boolean':
      return ['`true`', '`true`, `false`'];
    case 'pem':
    case 'pems':
      return [undefined, 'PEM'];
    case 'integers':
    case 'texts':
    case 'options':
      return [undefined, 'object'];
    case 'functions':
      return ['none', 'list of functions'];
    case 'function':
      return [undefined, 'function'];
  }
}

test.each<[string, OptionRules]>([
  ['server', serverRules],
  ['channel', channelRules],
  ['outlierDetection', outlierRules],
  ['consistentHash', consistentHashRules],
  ['subset', subsetRules],
  ['loadReports', loadReportRules],
  ['verbs', verbsRules],
  ['configure', runtimeRules],
])('options of %s: all of them, with their defaults and ranges', (mark, rules) => {
  const rows = tableOf(documents, `options: ${mark}`).map(([name = '', value, range]) => [
    namesIn(name)[0],
    value,
    range,
  ]);
  const expected = Object.entries(rules).map(([name, rule]) => {
    const [value, range] = cellsOf(name, rule);
    return [name, value ?? expect.stringMatching(/./), range];
  });
  expect(rows).toEqual(expected);
});

test('slotBytes, whose rule has no default, since shm has one of its own', () => {
  const [, value, , text = ''] =
    tableOf(documents, 'options: configure').find(([name = '']) => namesIn(name)[0] === 'slotBytes') ?? [];
  expect(value).toBe(shown('Bytes', limits.slotBytes.default));
  expect(text).toContain(`${shown('Bytes', limits.shmSlotBytes)} on \`shm\``);
});

/** Returns a constant of the native layers. */
function nativeLimit(name: string): number {
  const [, digits] = new RegExp(`${name} = ([\\d']+);`).exec(read('native/session/limits.h')) ?? [];
  return Number(digits?.replaceAll("'", ''));
}

test('fixed limits', () => {
  const expected: [string, string][] = [
    ['metadata of one message', shown('Bytes', limits.metadataBytes)],
    ['metadata entries', shown('', limits.metadataEntries)],
    ['text of an error', shown('Bytes', limits.errorTextBytes)],
    ['frame of the handshake', shown('Bytes', limits.controlFrameBytes)],
    ['parts of a stream sent and unread, in each direction', shown('', limits.streamParts)],
    [
      'large messages of a stream sent and unread, in each direction',
      shown('streamBytes', limits.streamBytes),
    ],
    [
      'reader of a stream that takes no large message, while other calls of the server wait for memory',
      shown('Ms', nativeLimit('kUnreadStreamNs') / 1e6),
    ],
    ['wait for the answers to the parts of a cancelled stream', shown('partLingerMs', limits.partLingerMs)],
    ['gather entries of a message', shown('', limits.gatherEntriesMax)],
    ['smallest value sent in place', shown('Bytes', limits.gatherBytes)],
    ['smallest value received as a view', shown('Bytes', limits.leaseBytes)],
    ['large messages that wait for memory, per thread', shown('', nativeLimit('kMemoryWaitersMax'))],
    [
      'wait until a server releases the memory of a cancelled call',
      shown('Ms', nativeLimit('kSettleGraceNs') / 1e6),
    ],
    [
      'time for which a server may keep the memory of a cancelled call in use',
      shown('Ms', nativeLimit('kHoldLimitNs') / 1e6),
    ],
    ['time without credits from a peer', shown('Ms', nativeLimit('kNoCreditNs') / 1e6)],
    [
      'time without credits from a peer, while all `sendSlots` are taken',
      shown('Ms', nativeLimit('kNoCreditShortNs') / 1e6),
    ],
    ['time for a function given as `authorize`', shown('Ms', limits.authorizeMs)],
    ['time for a function given as `credentials`', shown('Ms', limits.credentialsMs)],
    ['time before their expiry at which credentials are renewed', shown('Ms', limits.credentialsMarginMs)],
    ['addresses of a channel', shown('', connectionLimits.addressesMax)],
    ['addresses in the list of a resolver, with `subset`', shown('', connectionLimits.listedMax)],
    ['file of a service configuration', shown('Bytes', connectionLimits.configBytesMax)],
    ['time for the answer to a ping', shown('Ms', connectionLimits.verifyTimeoutMs)],
    ['longest ejection of an address for bad answers', shown('Ms', connectionLimits.ejectionMaxMs)],
    ['log lines a second of a server for each peer address', shown('', limits.logLinesPerSecond)],
    ['peer addresses with log lines of their own, a second', shown('', limits.logPeersMax)],
    ['time for a client to answer a goaway', shown('Ms', limits.goawayNoticeMs)],
    ['time for a worker to listen after its start', shown('Ms', workerLimits.workerStartTimeoutMs)],
    ['time for a worker to answer that its thread is free', shown('Ms', workerLimits.workerAnswerMs)],
    ['time that a connection waits for a worker', shown('Ms', workerLimits.workerWaitMs)],
    ['attempts of one thread to connect to one address at once', shown('', connectionLimits.connectingMax)],
    ['connections that wait for a worker', shown('', workerLimits.workerWaiting)],
    ['time for a peer to take the last bytes of its connection', shown('Ms', limits.closeTimeoutMs)],
  ];
  expect(tableOf(documents, 'limits').map((cells) => cells.slice(0, 2))).toEqual(expected);
});

test('numbers in the text', () => {
  const plain = documents.replace(/\s+/g, ' ');
  const missing = [
    `\`server.shutdown({ graceMs })\` (default ${shown('Ms', limits.graceMs.default)})`,
    `\`bytes\` values of ${shown('Bytes', limits.gatherBytes)} and more are sent without a copy, or copied`,
    `Values beyond ${limits.gatherEntriesMax} gather entries`,
    `up to ${shown('Bytes', limits.newBufferBytes)} copied when the buffer is used for the first time`,
    `\`bytes\` fields of ${shown('Bytes', limits.leaseBytes)} and more`,
    `up to \`slotBytes\` (${shown('Bytes', limits.slotBytes.default)}, on \`shm\` ${shown('Bytes', limits.shmSlotBytes)})`,
    `steps of ${limits.wheelTickMs} ms`,
    `at most ${nativeLimit('kSettleGraceNs') / 1e6} ms. When the server`,
    `A server that does not answer for ${nativeLimit('kHoldLimitNs') / 1e9} seconds loses the connection`,
    `Up to ${shown('', nativeLimit('kMemoryWaitersMax'))} messages wait per thread`,
    `At most ${shown('Bytes', limits.errorTextBytes)} of the text is sent`,
    `| option \`workers\` | Number of workers, ${workerLimits.workers.min} to ${workerLimits.workers.max}.`,
    `does not answer within ${workerLimits.workerAnswerMs} ms, the connection`,
    `after ${shown('', workerLimits.workerStartTimeoutMs)} ms without \`listenInWorker\``,
    `after a pause of ${workerLimits.workerRestartMs.first} ms`,
    `the pause doubles each time, up to ${workerLimits.workerRestartMs.max / 1000} s`,
  ].filter((part) => !plain.includes(part));
  expect(missing).toEqual([]);
});

test('the sums of docs/deploy/sizing.md', () => {
  const mib = (bytes: number) => (bytes / 2 ** 20).toFixed(1);
  const slot = limits.slotBytes.default + limits.slotHeadBytes;
  const receives = limits.inflight.default + limits.receivesBesides;
  const slots = limits.sendSlots.default;
  const plain = pageOf('deploy/sizing').replace(/\s+/g, ' ');
  const missing = [
    `${shown('', slots)} × ${shown('', slot)} bytes = ${mib(slots * slot)} MiB`,
    `On \`shm\` a slot has ${shown('Bytes', limits.shmSlotBytes)}, so the send slots take ${mib(slots * (limits.shmSlotBytes + limits.slotHeadBytes))} MiB`,
    `(\`inflightMax\` + ${limits.receivesBesides}) × ${shown('', limits.shmSlotBytes + limits.slotHeadBytes)} bytes = ${mib(receives * (limits.shmSlotBytes + limits.slotHeadBytes))} MiB`,
    `${receives} × ${shown('', slot)} bytes = ${mib(receives * slot)} MiB each`,
    `(\`inflightMax\` + ${limits.receivesBesides}) × ${shown('', slot)} bytes = ${mib(receives * slot)} MiB`,
    `\`inflightMax\` + ${limits.receivesBesides} are ${receives} slots`,
    `${limits.inflight.default} receives for calls, ${nativeLimit('kControlReceives')} receives for control frames, and ${nativeLimit('kOverflowSlots')} slots`,
    `At most ${shown('', nativeLimit('kSharedReceivesMax'))} receives are shared`,
    `(1,024 + 32 × sessions) × ${shown('', slot)} bytes, which is ${Math.round(((1024 + 32 * 500) * slot) / 2 ** 20)} MiB for 500 sessions`,
  ].filter((part) => !plain.includes(part));
  expect(missing).toEqual([]);
});

test('counters: all of them', () => {
  const rows = tableOf(documents, 'counters').flatMap(([names = '']) => namesIn(names));
  expect(rows).toEqual(Object.keys(stats()));
});

test('status codes: all of them, with their numbers', () => {
  const rows = tableOf(documents, 'statuses').filter(([number]) => number !== '');
  expect(Object.fromEntries(rows.map(([number, name]) => [name, Number(number)]))).toEqual(Status);
});

test('texts of errors are those of the sources', () => {
  const sources = projectFiles().filter((file) => /^(runtime|native\/(?!test\/)).*\.(ts|cc|h)$/.test(file));
  // A C++ text may continue on the next line.
  const all = sources
    .map((file) =>
      read(file)
        .replace(/"\s*\n\s*"/g, '')
        .replaceAll('\\`', '`'),
    )
    .join('\n');
  const texts = tableOf(documents, 'messages').map(([cell = '']) => namesIn(cell)[0] ?? '');
  const parts = texts.flatMap((text) => text.split('…').map((part) => part.trim()));
  expect(parts.length).toBeGreaterThan(15);
  expect(parts.filter((part) => !all.includes(part))).toEqual([]);
});
