/**
 * `rdma-rpc events`: prints the asynchronous events of RDMA devices as they come, as asyncwatch of
 * libibverbs' examples does, with their meaning for sessions. Ends on SIGINT or SIGTERM.
 */
import type { Command } from '#commander';
import pc from '#picocolors';
import { firstSessionBytes } from '../../runtime/boundary/contexts.ts';
import { wallMs } from '../../runtime/clock.ts';
import {
  loadNative,
  type NativeModule,
  type VerbsEvent,
  type VerbsWatch,
} from '../../runtime/native/native.ts';
import { jsonText, printableLine } from '../output.ts';
import { noDeviceText } from './devices.ts';

/** The meaning of each event of a device or a port for sessions of rdma-rpc. */
const meanings: Readonly<Record<string, string>> = {
  IBV_EVENT_DEVICE_FATAL:
    'the device has failed or is removed: its sessions end now, and clients connect again by another fabric',
  IBV_EVENT_PORT_ACTIVE: 'the port carries traffic again: new sessions can be opened on it',
  IBV_EVENT_PORT_ERR:
    'the link is down: sessions end if it stays down for longer than their retries last (verbs.retryCount)',
  IBV_EVENT_LID_CHANGE:
    'the port has another LID: sessions over InfiniBand end when their retries fail, and connect again',
  IBV_EVENT_PKEY_CHANGE: 'the partitions have changed: sessions of a partition that is gone end',
  IBV_EVENT_SM_CHANGE: 'another subnet manager is in charge: sessions continue',
  IBV_EVENT_CLIENT_REREGISTER:
    'the subnet manager has lost its tables: sessions continue, multicast groups must be joined again',
  IBV_EVENT_GID_CHANGE:
    'an address of the port has come or gone: sessions of a GID that is gone end when their retries fail',
};
const ofObject = 'it concerns an object of the process that has opened the device';

/** An event with its device and time. */
export interface DeviceEvent {
  readonly time: string;
  readonly device: string;
  /** The value is 0 when the event concerns the device as a whole. */
  readonly port: number;
  readonly event: string;
  /** The meaning of the event for sessions. */
  readonly meaning: string;
}

export function deviceEvent(device: string, { name, port }: VerbsEvent, atMs: number): DeviceEvent {
  const time = new Date(atMs).toISOString();
  return { time, device, port, event: name, meaning: meanings[name] ?? ofObject };
}

export function eventText({ time, device, port, event, meaning }: DeviceEvent): string {
  const place = port === 0 ? device : `${device} port ${port}`;
  return printableLine(`${time} ${place}: ${event}: ${meaning}`);
}

/** Milliseconds between two polls of the devices. Until the next poll the kernel queues the events. */
const askEveryMs = 100;

/** Passes the events to `onEvent` until the signal is aborted; then closes the devices. */
export function watchEvents(
  watches: ReadonlyMap<string, VerbsWatch>,
  onEvent: (event: DeviceEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve) => {
    const ask = (): void => {
      for (const [device, watch] of watches)
        for (const event of watch.take()) onEvent(deviceEvent(device, event, wallMs()));
    };
    const timer = setInterval(ask, askEveryMs);
    const end = (): void => {
      clearInterval(timer);
      ask();
      for (const watch of watches.values()) watch.close();
      resolve();
    };
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
  });
}

/**
 * Opens the devices with the given names, or all devices. When one of them cannot be opened, closes the
 * others and throws an Error that names the missing part.
 */
export function openWatches(
  native: Pick<NativeModule, 'verbsDevices' | 'verbsWatch'>,
  names: readonly string[],
): Map<string, VerbsWatch> {
  const { devices, whyNone } = native.verbsDevices(firstSessionBytes());
  if (devices.length === 0) throw new Error(noDeviceText(whyNone));
  const wanted = names.length === 0 ? devices.map(({ name }) => name) : names;
  const watches = new Map<string, VerbsWatch>();
  try {
    for (const name of wanted) if (!watches.has(name)) watches.set(name, native.verbsWatch(name));
  } catch (error) {
    for (const watch of watches.values()) watch.close();
    throw error;
  }
  return watches;
}

export function addEventsCommand(program: Command): void {
  program
    .command('events')
    .description('print the asynchronous events of RDMA devices as they arrive, until SIGINT')
    .argument('[device...]', 'names of devices; default: all')
    .option('--json', 'print a line of JSON for each event, for programs; docs/schemas describes it')
    .action(async (names: readonly string[], { json }: { json?: true }) => {
      let watches: Map<string, VerbsWatch>;
      try {
        watches = openWatches(loadNative(), names);
      } catch (error) {
        const message = (error as Error).message.replace(/^rdma-rpc: /, '');
        if (json === true) console.log(jsonText({ error: { message } }));
        console.error(pc.red(`error: ${message}`));
        process.exitCode = 1;
        return;
      }
      const ended = new AbortController();
      for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => ended.abort());
      console.error(`waiting for events of ${[...watches.keys()].join(', ')}`);
      const print = (event: DeviceEvent): void =>
        console.log(json === true ? jsonText(event) : eventText(event));
      await watchEvents(watches, print, ended.signal);
    });
}
