/**
 * All attributes of RDMA devices, and their events, for `rdma-rpc devices -v` and `events`. They are part of
 * the native boundary (native.ts).
 */

/** Attributes by their names in libibverbs. Values are decimal numbers or words. */
export type VerbsAttributes = Readonly<Record<string, string>>;

export interface VerbsPortDetails {
  readonly number: number;
  /** Attributes of the port. They are empty when the device does not report them. */
  readonly attributes: VerbsAttributes;
  /** The P_Keys by their index, without empty entries. */
  readonly pkeys: VerbsAttributes;
}

export interface VerbsDetails {
  readonly name: string;
  /** The reason why the device cannot be opened, or '' when it can be opened. */
  readonly whyNot: string;
  readonly attributes: VerbsAttributes;
  /** The names of the device's device_cap_flags, without IBV_DEVICE_. */
  readonly flags: readonly string[];
  readonly ports: readonly VerbsPortDetails[];
}

/** An event of a device or of one of its ports. */
export interface VerbsEvent {
  /** The name of the event, such as `IBV_EVENT_PORT_ERR`. */
  readonly name: string;
  /** The description of the event by libibverbs. */
  readonly text: string;
  /** The port of the event, or 0 when the event concerns the device as a whole. */
  readonly port: number;
}

/** Receives the events of one device. */
export interface VerbsWatch {
  /** Removes the received events and returns them. */
  take(): VerbsEvent[];
  /** Closes the device. */
  close(): void;
}
