/**
 * The tables of docs/GUIDE.md against the sources: options, limits, counters, status codes and the texts of
 * errors.
 */
import { expect, test } from 'vitest';
import { channelRules, outlierRules } from '../../runtime/client/channel-options.ts';
import * as connectionLimits from '../../runtime/client/connections/limits.ts';
import { runtimeRules } from '../../runtime/control/configure.ts';
import { verbsRules } from '../../runtime/control/fabric-options.ts';
import type { OptionRule, OptionRules } from '../../runtime/core/options.ts';
import { Status, stats } from '../../runtime/index.ts';
import * as limits from '../../runtime/limits.ts';
import * as reverseLimits from '../../runtime/reverse/limits.ts';
import { serverRules } from '../../runtime/server/server-options.ts';
import * as workerLimits from '../../runtime/workers/limits.ts';
import { projectFiles, read } from '../house/tree.ts';
import { guide, namesIn, tableOf } from './document.ts';

const units = { GiB: 2 ** 30, MiB: 2 ** 20, KiB: 2 ** 10 };

/** A number as the guide writes it: sizes in the largest unit that divides them, times with theirs. */
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
 * Default and range as the table has them; a default that is undefined is put in words, which are not
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
  ['verbs', verbsRules],
  ['configure', runtimeRules],
])('options of %s: all of them, with their defaults and ranges', (mark, rules) => {
  const rows = tableOf(guide, `options: ${mark}`).map(([name = '', value, range]) => [
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
    tableOf(guide, 'options: configure').find(([name = '']) => namesIn(name)[0] === 'slotBytes') ?? [];
  expect(value).toBe(shown('Bytes', limits.slotBytes.default));
  expect(text).toContain(`${shown('Bytes', limits.shmSlotBytes)} on \`shm\``);
});

/** A constant of the native layers. */
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
    ['parts of a stream on their way or unread, in each direction', shown('', limits.streamParts)],
    [
      'large messages of a stream on their way or unread, in each direction',
      shown('streamBytes', limits.streamBytes),
    ],
    [
      'parts of a stream that was left, if the server does not answer them',
      shown('partLingerMs', limits.partLingerMs),
    ],
    ['pieces of a message sent in place', shown('', limits.piecesMax)],
    ['smallest value sent in place', shown('Bytes', limits.gatherBytes)],
    ['smallest value received as a view', shown('Bytes', limits.leaseBytes)],
    ['large messages waiting for memory, per thread', shown('', nativeLimit('kMemoryWaitersMax'))],
    ['asking a server to let go of memory', shown('Ms', nativeLimit('kSettleGraceNs') / 1e6)],
    ['a server that does not let go of memory', shown('Ms', nativeLimit('kHoldLimitNs') / 1e6)],
    ['a peer that takes no further message', shown('Ms', nativeLimit('kNoCreditNs') / 1e6)],
    ['the same, while all `sendSlots` are taken', shown('Ms', nativeLimit('kNoCreditShortNs') / 1e6)],
    ['calls of a server to one client that wait for their answers', shown('', reverseLimits.reverseCalls)],
    ['bytes of those that the client has not begun to read', shown('Bytes', reverseLimits.reverseQueueBytes)],
    ['the answer of a function given as `authorize`', shown('Ms', limits.authorizeMs)],
    ['the answer of a function given as `credentials`', shown('Ms', limits.credentialsMs)],
    ['before credentials expire they are asked for again', shown('Ms', limits.credentialsMarginMs)],
    ['addresses of a channel', shown('', connectionLimits.addressesMax)],
    ['the answer to a ping', shown('Ms', connectionLimits.verifyTimeoutMs)],
    ['an address left out because of bad answers', shown('Ms', connectionLimits.ejectionMaxMs)],
    ['log lines a second, of a server for each peer address', shown('', limits.logLinesPerSecond)],
    ['peer addresses with log lines of their own, a second', shown('', limits.logPeersMax)],
    ['from telling a client to go to turning its requests away', shown('Ms', limits.goawayNoticeMs)],
    ['from starting a worker to its listening', shown('Ms', workerLimits.workerStartTimeoutMs)],
    ['a worker that does not say that its thread is free', shown('Ms', workerLimits.workerAnswerMs)],
    ['a connection that no worker takes', shown('Ms', workerLimits.workerWaitMs)],
    ['attempts of one thread to connect to one address at once', shown('', connectionLimits.connectingMax)],
    ['connections that wait for a worker', shown('', workerLimits.workerWaiting)],
    ['a peer that does not take the last bytes of its connection', shown('Ms', limits.closeTimeoutMs)],
  ];
  expect(tableOf(guide, 'limits').map((cells) => cells.slice(0, 2))).toEqual(expected);
});

test('numbers in the text', () => {
  for (const part of [
    `\`graceMs\` (default ${shown('', limits.graceMs.default)})`,
    `\`bytes\` values of ${shown('Bytes', limits.gatherBytes)} and more are sent from where they are, or copied`,
    `Values beyond ${limits.piecesMax} pieces`,
    `up to ${shown('Bytes', limits.newBufferBytes)} copied when no message had the buffer before`,
    `\`bytes\` fields of ${shown('Bytes', limits.leaseBytes)} and more`,
    `up to \`slotBytes\` (${shown('Bytes', limits.slotBytes.default)}, on \`shm\` ${shown('Bytes', limits.shmSlotBytes)})`,
    `steps of ${limits.wheelTickMs} ms`,
    `at most ${nativeLimit('kSettleGraceNs') / 1e6} ms. When the server`,
    `A server that does not answer for ${nativeLimit('kHoldLimitNs') / 1e9} seconds loses the connection`,
    `Up to ${shown('', nativeLimit('kMemoryWaitersMax'))} wait per thread`,
    `At most ${shown('Bytes', limits.errorTextBytes)} of it travels`,
    `| option \`workers\` | ${workerLimits.workers.min} to ${workerLimits.workers.max}.`,
    `does not answer within ${workerLimits.workerAnswerMs} ms is passed over`,
    `after ${shown('', workerLimits.workerStartTimeoutMs)} ms without \`listenInWorker\``,
    `${workerLimits.workerRestartMs.first} ms, which doubles to ${workerLimits.workerRestartMs.max / 1000} s`,
  ]) {
    expect(guide).toContain(part);
  }
});

test('counters: all of them', () => {
  const rows = tableOf(guide, 'counters').flatMap(([names = '']) => namesIn(names));
  expect(rows).toEqual(Object.keys(stats()));
});

test('status codes: all of them, with their numbers', () => {
  const rows = tableOf(guide, 'statuses').filter(([number]) => number !== '');
  expect(Object.fromEntries(rows.map(([number, name]) => [name, Number(number)]))).toEqual(Status);
});

test('texts of errors are those of the sources', () => {
  const sources = projectFiles().filter((file) => /^(runtime|native\/(?!test\/)).*\.(ts|cc|h)$/.test(file));
  // A C++ text may go on in the next line.
  const all = sources.map((file) => read(file).replace(/"\s*\n\s*"/g, '')).join('\n');
  const texts = tableOf(guide, 'messages').map(([cell = '']) => namesIn(cell)[0] ?? '');
  const parts = texts.flatMap((text) => text.split('…').map((part) => part.trim()));
  expect(parts.length).toBeGreaterThan(15);
  expect(parts.filter((part) => !all.includes(part))).toEqual([]);
});
