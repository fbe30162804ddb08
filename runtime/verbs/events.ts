/**
 * The events other than completions that a device reports, as an async iterable.
 */
import type { NativeVerbsDevice } from '../native/verbs-device.ts';

/** An event of a device (`struct ibv_async_event`). See ibv_get_async_event(3). */
export interface DeviceEvent {
  /**
   * `sq_drained`: the queue pair is in SQD and has no request in progress. `srq_limit_reached`: see
   * `SharedReceiveQueue.armLimit`. `qp_fatal`: the queue pair has failed. `port_active`, `port_error`: the
   * port of the device. `device_fatal`: the device was removed.
   */
  readonly type: string;
  /** The queue pair that the event concerns, or 0. */
  readonly qpNum: number;
}

/**
 * Interval in milliseconds at which the device is asked for events. The device notices events itself when
 * completions are polled or awaited.
 */
const askMs = 20;

/** Yields the events of a device until `ended` is true. Waiting keeps the process alive. */
export async function* eventsOf(
  native: NativeVerbsDevice,
  ended: () => boolean,
): AsyncGenerator<DeviceEvent, void, void> {
  while (!ended()) {
    const found = native.events();
    for (let i = 0; i < found.length; i += 2)
      yield { type: found[i] as string, qpNum: found[i + 1] as number };
    if (found.length === 0) await new Promise((resolve) => setTimeout(resolve, askMs));
  }
}
