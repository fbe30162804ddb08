/**
 * Reads the counters that an RDMA device and its driver keep, from sysfs. They count packets that were lost,
 * sent again or marked on the way, which completions do not report. `rdma-rpc info`, `top` and the Prometheus
 * adapter use it. Files are read on Node's thread pool, because a driver may ask its firmware for a value.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Counters of a port, or of a device as a whole. The names are the kernel's
 * (Documentation/ABI/stable/sysfs-class-infiniband) and the driver's.
 */
export interface DeviceCounters {
  readonly device: string;
  /** The number of the port, counted from 1. The value is 0 for counters of the device as a whole. */
  readonly port: number;
  readonly counters: Readonly<Record<string, number>>;
}

const CLASS = '/sys/class/infiniband';

/** Returns the entries of a folder, sorted. The list is empty when the folder does not exist. */
const namesIn = (folder: string): Promise<readonly string[]> =>
  readdir(folder).then(
    (names) => names.sort(),
    () => [],
  );

/**
 * Reads the counters in a folder. The file `lifespan` is skipped, because it is not a counter: it contains
 * the time for which the driver answers with the same values.
 */
async function countersIn(folder: string): Promise<Record<string, number>> {
  const names = (await namesIn(folder)).filter((name) => name !== 'lifespan');
  const read = async (name: string): Promise<[string, number]> => {
    const text = await readFile(join(folder, name), 'latin1').catch(() => '');
    return [name, text.trim() === '' ? Number.NaN : Number(text)];
  };
  const all = await Promise.all(names.map(read));
  // A port without a link refuses some of its counters, and some drivers print 'N/A (no PMA)'.
  return Object.fromEntries(all.filter(([, value]) => Number.isFinite(value)));
}

async function countersOf(device: string, folder: string): Promise<DeviceCounters[]> {
  const ports = await namesIn(join(folder, 'ports'));
  const ofPorts = ports.map(async (port) => {
    const at = join(folder, 'ports', port);
    const [standard, driver] = await Promise.all([
      countersIn(join(at, 'counters')),
      countersIn(join(at, 'hw_counters')),
    ]);
    return { device, port: Number(port), counters: { ...standard, ...driver } };
  });
  const whole = countersIn(join(folder, 'hw_counters')).then((counters) => ({ device, port: 0, counters }));
  const all = await Promise.all([whole, ...ofPorts]);
  return all.filter(({ counters }) => Object.keys(counters).length > 0);
}

/**
 * Reads the counters of the RDMA devices of this machine, or only of the devices in `devices`, in the order
 * of their names and ports. The list is empty when there is no device. Values only grow until the driver is
 * loaded again. Counters that a driver does not have are omitted. `root` is the folder of the devices.
 */
export async function readDeviceCounters(
  devices?: readonly string[],
  root: string = CLASS,
): Promise<readonly DeviceCounters[]> {
  const names = await namesIn(root);
  const wanted = names.filter((name) => devices?.includes(name) ?? true);
  return (await Promise.all(wanted.map((name) => countersOf(name, join(root, name))))).flat();
}

/**
 * Matches parts of the names of counters that grow only when something is wrong. Each driver has its own
 * names, for example `out_of_sequence` and `roce_adp_retrans` of mlx5, `retry_exceeded_err` of rxe,
 * `cnpHandled` of irdma.
 */
const TROUBLE =
  /err|retr|nak|timeout|discard|drop|down|out_of|seq|cnp|ecn|overrun|duplicate|violation|recovery|slow_restart/i;

/**
 * Returns whether a counter counts packets or requests that were lost, refused, sent again, or slowed down by
 * congestion.
 */
export const isTrouble = (name: string): boolean => TROUBLE.test(name);
