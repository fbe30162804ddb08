/**
 * `rdma-rpc doctor --report`: writes one file about this machine that can be pasted into an issue, without
 * private data. The file is Markdown, which issues display and which people can read before they send it.
 */
import { arch, availableParallelism, cpus, release } from 'node:os';
import type { DeviceCounters } from '../../../runtime/counters/device-counters.ts';
import { fabricRow } from '../../../runtime/fabrics.ts';
import type { VerbsDetails } from '../../../runtime/native/native.ts';
import { fabricNames } from '../../perf/plan.ts';
import { version } from '../../version.ts';
import { noDeviceText } from '../devices.ts';
import type { Facts } from '../facts.ts';
import { type Finding, findingsText } from '../findings.ts';
import { kernelDevices, type Machine } from '../machine.ts';
import { deviceFacts } from './device-facts.ts';
import { type Fact, limitFacts } from './limits.ts';
import type { Masking } from './masking.ts';
import { figureOf, type Subject, type Tested } from './self-test.ts';

interface ReportParts {
  readonly machine: Machine;
  readonly facts: Facts;
  readonly findings: readonly Finding[];
  readonly details: readonly VerbsDetails[];
  readonly tested: readonly Tested[];
}

/** Returns the subjects of the self-test: each usable device, and the fabrics that need no device. */
export function subjectsOf({ verbs, fabrics }: Facts): readonly Subject[] {
  const devices = verbs.devices.filter(({ whyNot }) => whyNot === '');
  const measured = fabricNames.flatMap((fabric) => {
    const fact = fabrics.find(({ name }) => name === fabric);
    return fact === undefined ? [] : [{ fabric, fact, hasDevice: fabricRow(fact.name).hasDevice }];
  });
  const onDevices = measured.filter(({ hasDevice }) => hasDevice);
  const others = measured.filter(({ hasDevice, fact }) => !hasDevice && fact.whyNot === '');
  return [
    ...onDevices.flatMap(({ fabric }) => devices.map(({ name }) => ({ fabric, device: name }))),
    ...others.map(({ fabric }) => ({ fabric })),
  ];
}

/** Returns text for a table cell, without the characters that would end the cell or its row. */
const cell = (text: string): string => text.replace(/\s+/g, ' ').replaceAll('|', '/');

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`;
  return rows.length === 0 ? [] : [line(head), line(head.map(() => '---')), ...rows.map(line), ''];
}

const factTable = (facts: readonly Fact[]): string[] => table(['', ''], facts);

function systemFacts(facts: Facts): readonly Fact[] {
  const [cpu] = cpus();
  return [
    ['rdma-rpc', version()],
    ['Node', process.version],
    ['Linux', `${release()} ${arch()}`],
    ['processors', `${availableParallelism()}${cpu === undefined ? '' : ` × ${cpu.model.trim()}`}`],
    ['native addon', facts.whyNoAddon === '' ? 'loads' : facts.whyNoAddon],
    ...facts.fabrics.map(
      ({ name, whyNot }) => [`fabric ${name}`, whyNot === '' ? 'can be used' : `no: ${whyNot}`] as const,
    ),
    ['rdma_cm', facts.verbs.whyNoCm === '' ? 'can be used' : `no: ${facts.verbs.whyNoCm}`],
  ];
}

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

function deviceSections({ machine, facts, details }: ReportParts): string[] {
  const names = new Set([...kernelDevices(machine), ...facts.verbs.devices.map(({ name }) => name)]);
  if (names.size === 0) return [`${sentence(noDeviceText(facts.verbs.whyNone || 'none found'))}.`, ''];
  return [...names].flatMap((name) => [
    `### ${name}`,
    '',
    ...factTable(
      deviceFacts(
        machine,
        name,
        facts.verbs.devices.find((device) => device.name === name),
        details.find((each) => each.name === name),
      ),
    ),
  ]);
}

function testSection({ subject, results, before, after }: Tested): string[] {
  const title = subject.device === undefined ? subject.fabric : `${subject.device} (${subject.fabric})`;
  const rows = results.flatMap(({ test, rows: figures, whyNot }) =>
    whyNot === ''
      ? figures.map((row) => [test, String(row.bytes), figureOf(test, row)])
      : [[test, '', `not measured: ${whyNot}`]],
  );
  return [
    `### ${title}`,
    '',
    ...table(['operation', 'bytes', 'figure'], rows),
    ...table(['counter', 'before', 'after'], changedCounters(before, after)),
  ];
}

/** Returns the counters that the self-test changed or that were not 0 before it. */
function changedCounters(
  before: readonly DeviceCounters[],
  after: readonly DeviceCounters[],
): (readonly string[])[] {
  return after.flatMap(({ device, port, counters }) => {
    const old = before.find((each) => each.device === device && each.port === port)?.counters ?? {};
    const place = port === 0 ? 'device' : `port ${port}`;
    return Object.entries(counters)
      .filter(([name, value]) => value !== 0 || (old[name] ?? 0) !== 0)
      .map(([name, value]) => [`${place} ${name}`, String(old[name] ?? 0), String(value)]);
  });
}

/** Returns the report, masked. */
export function reportText(parts: ReportParts, masking: Masking): string {
  const lines = [
    '# rdma-rpc report',
    '',
    'Made by `rdma-rpc doctor --report`. Names of the host and of its users, home directories, and addresses',
    'are masked: the same name stands for the same address. Environment variables are left out.',
    '',
    '## System',
    '',
    ...factTable(systemFacts(parts.facts)),
    '## Findings',
    '',
    '```text',
    ...findingsText(parts.findings).split('\n'),
    '```',
    '',
    '## Limits',
    '',
    ...factTable(limitFacts(parts.machine)),
    '## Devices',
    '',
    ...deviceSections(parts),
    '## Self-test',
    '',
    ...parts.tested.flatMap(testSection),
  ];
  return `${lines
    .map((line) => masking.text(line))
    .join('\n')
    .trimEnd()}\n`;
}
