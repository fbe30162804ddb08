/**
 * `rdma-rpc devices -v`: prints all that libibverbs reports about a device, as `ibv_devinfo -v` does, and the
 * counters of the device.
 */
import type { DeviceCounters } from '../../runtime/counters/device-counters.ts';
import type { VerbsDetails, VerbsPortDetails } from '../../runtime/native/native.ts';

const entryLines = (entries: Readonly<Record<string, string | number>>): string[] =>
  Object.entries(entries).map(([name, value]) => `    ${name}: ${value}`);

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`  ${title}`, ...lines];
}

function portLines({ number, attributes, pkeys }: VerbsPortDetails): string[] {
  return [
    ...section(`port ${number}: attributes`, entryLines(attributes)),
    ...section(`port ${number}: P_Keys`, entryLines(pkeys)),
  ];
}

function counterLines({ port, counters }: DeviceCounters): string[] {
  const place = port === 0 ? 'device' : `port ${port}`;
  return section(`${place}: counters`, entryLines(counters));
}

/** Returns the lines of one device, indented below its name. `counters` may include other devices. */
export function detailLines(
  { name, attributes, flags, ports }: VerbsDetails,
  counters: readonly DeviceCounters[],
): string[] {
  return [
    ...section('device: attributes', entryLines(attributes)),
    ...section(
      'device_cap_flags',
      flags.map((flag) => `    ${flag}`),
    ),
    ...ports.flatMap(portLines),
    ...counters.filter(({ device }) => device === name).flatMap(counterLines),
  ];
}
