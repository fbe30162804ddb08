/**
 * Tests `rdma-rpc events`: events of simulated devices, and the command on the machine that runs the tests.
 */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  type DeviceEvent,
  deviceEvent,
  eventText,
  openWatches,
  watchEvents,
} from '../../cli/machine/events.ts';
import type { VerbsEvent, VerbsReport, VerbsWatch } from '../../runtime/native/native.ts';
import { run } from './command.ts';
import { expectSchema } from './schemas.ts';
import { device } from './scripted-machine.ts';

/** A device whose events the test sets. */
class ScriptedWatch implements VerbsWatch {
  readonly events: VerbsEvent[] = [];
  closed = 0;
  take(): VerbsEvent[] {
    return this.events.splice(0);
  }
  close(): void {
    ++this.closed;
  }
}
const happens = (name: string, port: number): VerbsEvent => ({ name, text: name.toLowerCase(), port });

describe('an event', () => {
  test.each([
    [
      'IBV_EVENT_PORT_ERR',
      1,
      /^2026-01-02T03:04:05\.678Z mlx5_0 port 1: IBV_EVENT_PORT_ERR: the link is down/,
    ],
    ['IBV_EVENT_PORT_ACTIVE', 2, /Z mlx5_0 port 2: IBV_EVENT_PORT_ACTIVE: the port carries traffic again/],
    ['IBV_EVENT_DEVICE_FATAL', 0, /Z mlx5_0: IBV_EVENT_DEVICE_FATAL: the device has failed or is removed/],
    ['IBV_EVENT_LID_CHANGE', 1, /another LID/],
    ['IBV_EVENT_PKEY_CHANGE', 1, /partitions/],
    ['IBV_EVENT_SM_CHANGE', 1, /another subnet manager/],
    ['IBV_EVENT_CLIENT_REREGISTER', 1, /multicast groups/],
    ['IBV_EVENT_GID_CHANGE', 1, /an address of the port/],
    ['IBV_EVENT_QP_FATAL', 0, /an object of the process/],
  ])('%s is printed with its device, time and meaning', (name, port, expected) => {
    const event = deviceEvent('mlx5_0', happens(name, port), Date.UTC(2026, 0, 2, 3, 4, 5, 678));
    expectSchema('events', event);
    expect(eventText(event)).toMatch(expected);
  });
});

describe('watching', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test('prints the events of all devices, also those just before the end, and closes the devices', async () => {
    const [first, second] = [new ScriptedWatch(), new ScriptedWatch()];
    const seen: DeviceEvent[] = [];
    const ended = new AbortController();
    const watches = new Map([
      ['mlx5_0', first],
      ['mlx5_1', second],
    ]);
    const done = watchEvents(watches, (event) => seen.push(event), ended.signal);
    const places = () => seen.splice(0).map(({ device: name, port, event }) => [name, port, event]);
    first.events.push(happens('IBV_EVENT_PORT_ERR', 1), happens('IBV_EVENT_PORT_ACTIVE', 1));
    second.events.push(happens('IBV_EVENT_DEVICE_FATAL', 0));
    vi.advanceTimersByTime(100);
    expect(places()).toEqual([
      ['mlx5_0', 1, 'IBV_EVENT_PORT_ERR'],
      ['mlx5_0', 1, 'IBV_EVENT_PORT_ACTIVE'],
      ['mlx5_1', 0, 'IBV_EVENT_DEVICE_FATAL'],
    ]);
    second.events.push(happens('IBV_EVENT_GID_CHANGE', 2));
    ended.abort();
    await done;
    expect(places()).toEqual([['mlx5_1', 2, 'IBV_EVENT_GID_CHANGE']]);
    expect([first.closed, second.closed]).toEqual([1, 1]);
    first.events.push(happens('IBV_EVENT_PORT_ERR', 1));
    vi.advanceTimersByTime(1000);
    expect(seen).toEqual([]);
  });
});

describe('opening', () => {
  const report = (...names: string[]): VerbsReport => ({
    whyNone: names.length === 0 ? 'this machine has no RDMA device' : '',
    whyNoCm: '',
    memlock: '',
    devices: names.map((name) => ({ ...device, name })),
  });
  /** The device `broken` cannot be opened. */
  function nativeWith(names: string[], broken?: string) {
    const opened: [string, ScriptedWatch][] = [];
    return {
      opened,
      verbsDevices: () => report(...names),
      verbsWatch: (name: string) => {
        if (name === broken || !names.includes(name)) throw new Error(`rdma-rpc: no permission for ${name}`);
        const watch = new ScriptedWatch();
        opened.push([name, watch]);
        return watch;
      },
    };
  }

  test.each([
    [[], ['a', 'b']],
    [['b'], ['b']],
    [
      ['b', 'a', 'b'],
      ['b', 'a'],
    ],
  ])('%j opens each of these devices once, or all by default', (names, expected) => {
    expect([...openWatches(nativeWith(['a', 'b']), names).keys()]).toEqual(expected);
  });

  test('without a device the error has the reason that rdma-rpc devices prints', () => {
    expect(() => openWatches(nativeWith([]), [])).toThrow(/^this machine has no RDMA device$/);
  });

  test('a device that cannot be opened closes the others', () => {
    const native = nativeWith(['a', 'b'], 'b');
    expect(() => openWatches(native, [])).toThrow('no permission for b');
    expect(native.opened.map(([name, { closed }]) => [name, closed])).toEqual([['a', 1]]);
  });
});

test('the command names the missing device', async () => {
  const { code, out, errors } = await run('events', 'nobody', '--json');
  expect(code).toBe(1);
  expectSchema('events', JSON.parse(out));
  expect(errors).toMatch(
    /^error: (no RDMA device: |this machine has no RDMA device |there is no RDMA device 'nobody'; there is: )/,
  );
});
