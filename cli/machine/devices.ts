/**
 * `rdma-rpc devices`, a part of `rdma-rpc info`: the RDMA devices of this machine, their capabilities, and
 * the missing parts when a device cannot be used.
 */
import type { Command } from '#commander';
import pc from '#picocolors';
import { firstSessionBytes } from '../../runtime/boundary/contexts.ts';
import { type DeviceCounters, readDeviceCounters } from '../../runtime/counters/device-counters.ts';
import {
  loadNative,
  type VerbsCapabilities,
  type VerbsDetails,
  type VerbsDevice,
  type VerbsPort,
  type VerbsReport,
} from '../../runtime/native/native.ts';
import { detailLines } from './device-details.ts';

export function addDevicesCommand(program: Command): void {
  program
    .command('devices')
    .description('list RDMA devices with their capabilities, and what is missing to use them')
    .option('-v, --verbose', 'print all attributes and counters, as ibv_devinfo -v does')
    .option('--json', 'print all details as JSON, for programs')
    .action(async ({ json, verbose }: { json?: true; verbose?: true }) => {
      let report: VerbsReport;
      let details: readonly VerbsDetails[] = [];
      try {
        const native = loadNative();
        report = native.verbsDevices(firstSessionBytes());
        if (verbose === true) details = native.verbsDetails();
      } catch (error) {
        console.error(pc.red(`error: ${(error as Error).message}`));
        process.exitCode = 1;
        return;
      }
      const counters = verbose === true ? await readDeviceCounters() : [];
      const all = verbose === true ? { ...report, details, counters } : report;
      console.log(json === true ? JSON.stringify(all, null, 2) : devicesText(report, details, counters));
    });
}

/** Returns the count in the largest binary unit that divides it. */
export function bytes(count: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB'];
  let unit = 0;
  while (count !== 0 && count % 1024 === 0 && unit < units.length - 1) {
    count /= 1024;
    ++unit;
  }
  return `${count} ${units[unit]}`;
}

export function capabilityLines(can: VerbsCapabilities): string[] {
  const optional = [
    [can.windows, 'memory windows'],
    [can.immediate, 'immediate data'],
    [can.onDemand, 'on-demand paging'],
    [can.dmabuf, 'dmabuf'],
    [can.maxSrqWr !== 0, 'shared receives'],
  ] as const;
  const named = (wanted: boolean): string =>
    optional.flatMap(([has, name]) => (has === wanted ? [name] : [])).join(', ') || 'none';
  return [
    `has: ${named(true)}`,
    `lacks: ${named(false)}`,
    `inline up to ${bytes(can.maxInline)}, up to ${can.maxSge} pieces in a SEND, ${can.maxSgeRead} in a READ, ${can.maxRdAtomic} READs at a time`,
    `queues of ${can.maxQpWr}, messages up to ${bytes(can.maxMsgBytes)}`,
    can.segmentedBytes === 0
      ? 'what does not fit a slot goes by READ and WRITE'
      : `what does not fit a slot goes in several SENDs up to ${bytes(can.segmentedBytes)}, longer by READ and WRITE`,
    ...can.notes,
  ];
}

function portLines({ number, state, linkLayer, activeMtu, lid, gids }: VerbsPort): string[] {
  const local = lid === 0 ? '' : `, LID ${lid}`;
  const network = (name: string): string => (name === '' ? '' : `, ${name}`);
  return [
    `port ${number}: ${state}, ${linkLayer}, MTU ${activeMtu}${local}`,
    ...gids.map((each) => `  GID ${each.index}: ${each.gid} (${each.type}${network(each.interface)})`),
  ];
}

function deviceLines(
  { name, transport, whyNot, capabilities, ports }: VerbsDevice,
  more: readonly string[],
): string[] {
  const lines = ports.flatMap(portLines);
  // The capabilities of a device that cannot be opened are unknown.
  if (capabilities.maxQpWr !== 0) lines.push(...capabilityLines(capabilities));
  return [
    '',
    `${name} (${transport}): ${whyNot === '' ? 'can be used' : `cannot be used: ${whyNot}`}`,
    ...lines.map((line) => `  ${line}`),
    ...more,
  ];
}

/** Returns the sentence for a machine without a usable device. The reason may be a whole sentence already. */
export function noDeviceText(whyNone: string): string {
  return whyNone.startsWith('this machine has no RDMA device') ? whyNone : `no RDMA device: ${whyNone}`;
}

/** Returns the text. `details` and `counters` are shown below their devices; both may be empty. */
export function devicesText(
  { devices, whyNone, whyNoCm, memlock }: VerbsReport,
  details: readonly VerbsDetails[] = [],
  counters: readonly DeviceCounters[] = [],
): string {
  if (devices.length === 0) return noDeviceText(whyNone);
  const count = `${devices.length} RDMA device${devices.length === 1 ? '' : 's'}`;
  return [
    `${count}, ${devices.filter(({ whyNot }) => whyNot === '').length} can be used`,
    `rdma_cm: ${whyNoCm === '' ? 'can be used' : `cannot be used: ${whyNoCm}`}`,
    `locked memory: ${memlock}`,
    ...devices.flatMap((device) => {
      const detail = details.find(({ name }) => name === device.name);
      return deviceLines(device, detail === undefined ? [] : detailLines(detail, counters));
    }),
  ].join('\n');
}
