/** `rdma-rpc info`: shows fabrics, devices, limits, and the sizes at which messages change their tier. */
import { arch, availableParallelism, release } from 'node:os';
import type { Command } from '#commander';
import { contextOptions, slotBytesOf } from '../../runtime/boundary/contexts.ts';
import {
  type DeviceCounters,
  isTrouble,
  readDeviceCounters,
} from '../../runtime/counters/device-counters.ts';
import { gatherBytes, inflight, leaseBytes, messageBytes } from '../../runtime/limits.ts';
import type { VerbsReport } from '../../runtime/native/native.ts';
import { version } from '../version.ts';
import { bytes, capabilityLines, devicesText } from './devices.ts';
import { type FabricFact, type Facts, factsHere } from './facts.ts';
import { kernelDevices, type Machine, machineAt } from './machine.ts';

/** Facts about a device that only files of the system contain. */
interface DeviceFiles {
  readonly name: string;
  readonly firmware?: string;
  readonly board?: string;
  readonly ports: readonly {
    readonly number: number;
    readonly rate?: string;
    readonly physicalState?: string;
  }[];
  /** Counters of its ports, and of the device as a whole (port 0). */
  readonly counters: readonly Omit<DeviceCounters, 'device'>[];
}

export interface Info {
  readonly version: string;
  readonly node: string;
  readonly kernel: string;
  readonly arch: string;
  readonly cpus: number;
  readonly whyNoAddon: string;
  readonly fabrics: readonly FabricFact[];
  readonly verbs: VerbsReport;
  readonly kernelDevices: readonly DeviceFiles[];
  /** Ciphers for sealed sessions. */
  readonly ciphers: readonly string[];
  /** The sizes are in bytes; `docs/reference/options.md` lists the options that change them. */
  readonly sizes: Sizes;
}

interface Sizes {
  readonly slotBytes: number;
  readonly shmSlotBytes: number;
  readonly gatherBytes: number;
  readonly leaseBytes: number;
  readonly messageMaxBytes: number;
  readonly arenaBytes: number;
  readonly mrCacheBytes: number;
  readonly sendSlots: number;
  readonly inflightMax: number;
}

const given = <K extends string>(key: K, value: string | undefined): { [key in K]?: string } =>
  value === undefined || value === '' ? {} : ({ [key]: value } as { [key in K]?: string });

function filesOf(machine: Machine, name: string, counters: readonly DeviceCounters[]): DeviceFiles {
  const folder = `/sys/class/infiniband/${name}`;
  return {
    name,
    ...given('firmware', machine.text(`${folder}/fw_ver`)),
    ...given('board', machine.text(`${folder}/board_id`)),
    ports: machine.names(`${folder}/ports`).map((port) => ({
      number: Number(port),
      ...given('rate', machine.text(`${folder}/ports/${port}/rate`)),
      ...given('physicalState', machine.text(`${folder}/ports/${port}/phys_state`)?.replace(/^\d+: /, '')),
    })),
    counters: counters.filter((each) => each.device === name).map(({ device: _, ...rest }) => rest),
  };
}

export function infoOf(
  machine: Machine,
  { whyNoAddon, fabrics, verbs, ciphers }: Facts,
  counters: readonly DeviceCounters[] = [],
): Info {
  const { arenaBytes, mrCacheBytes, sendSlots } = contextOptions();
  return {
    version: version(),
    node: process.version,
    kernel: release(),
    arch: arch(),
    cpus: availableParallelism(),
    whyNoAddon,
    fabrics,
    verbs,
    kernelDevices: kernelDevices(machine).map((name) => filesOf(machine, name, counters)),
    ciphers,
    sizes: {
      slotBytes: slotBytesOf('registered'),
      shmSlotBytes: slotBytesOf('shared'),
      gatherBytes,
      leaseBytes,
      messageMaxBytes: messageBytes.default,
      arenaBytes,
      mrCacheBytes,
      sendSlots,
      inflightMax: inflight.default,
    },
  };
}

function fabricLines({ name, whyNot, capabilities }: FabricFact): string[] {
  if (whyNot !== '') return [`${name}: cannot be used: ${whyNot}`];
  const lines = capabilities === undefined ? [] : capabilityLines(capabilities);
  return [`${name}: can be used`, ...lines.map((line) => `  ${line}`)];
}

/** Returns the counters that indicate trouble and are not 0. */
function troubleText({ counters }: Pick<DeviceCounters, 'counters'>): string {
  const counted = Object.entries(counters).filter(([name, value]) => value > 0 && isTrouble(name));
  return counted.map(([name, value]) => `${name} ${value}`).join(', ');
}

function fileLines({ name, firmware, board, ports, counters }: DeviceFiles): string[] {
  const about = [firmware && `firmware ${firmware}`, board].filter(Boolean).join(', ');
  const each = ports.map(({ number, rate, physicalState }) =>
    [`  port ${number}:`, [rate, physicalState].filter(Boolean).join(', ')].join(' '),
  );
  const counted = counters
    .map((one) => [one.port === 0 ? 'device' : `port ${one.port}`, troubleText(one)] as const)
    .flatMap(([place, text]) => (text === '' ? [] : [`  ${place} has counted: ${text}`]));
  return [`${name}${about === '' ? '' : `: ${about}`}`, ...each, ...counted];
}

export function infoText(info: Info): string {
  const { sizes, ciphers } = info;
  const sealed =
    ciphers.length === 0
      ? 'cannot be sealed: this process has no libcrypto'
      : `can be sealed with ${ciphers.join(' or ')}`;
  const system = `rdma-rpc ${info.version}, Node ${info.node}, Linux ${info.kernel} ${info.arch}, ${info.cpus} processors`;
  if (info.whyNoAddon !== '') return `${system}\n\nno connections: ${info.whyNoAddon}`;
  const kernel = info.kernelDevices.flatMap(fileLines);
  return [
    system,
    '',
    ...info.fabrics.flatMap(fabricLines),
    '',
    devicesText(info.verbs),
    ...(kernel.length === 0 ? [] : ['', ...kernel]),
    '',
    `sessions ${sealed} (security.require, or --require of commands)`,
    `a message goes inline while it fits what the device takes inline, in a slot up to ${bytes(sizes.slotBytes)} (${bytes(sizes.shmSlotBytes)} on shm); each fabric above says how longer messages go`,
    `bytes from ${bytes(sizes.gatherBytes)} on are sent from where they are, and from ${bytes(sizes.leaseBytes)} on received as views`,
    `messages up to ${bytes(sizes.messageMaxBytes)}, ${sizes.inflightMax} calls in flight a session, ${sizes.sendSlots} send slots a thread`,
    `arena up to ${bytes(sizes.arenaBytes)}, registered buffers kept up to ${bytes(sizes.mrCacheBytes)}`,
  ].join('\n');
}

export function addInfoCommand(program: Command): void {
  program
    .command('info')
    .description('show fabrics, RDMA devices, limits and thresholds of this machine')
    .option('--json', 'print JSON for programs; docs/schemas describes it')
    .action(async ({ json }: { json?: true }) => {
      const info = infoOf(machineAt(), factsHere(), await readDeviceCounters());
      console.log(json === true ? JSON.stringify(info, null, 2) : infoText(info));
      process.exitCode = info.whyNoAddon === '' ? 0 : 1;
    });
}
