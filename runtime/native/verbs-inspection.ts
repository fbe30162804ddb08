/**
 * All attributes of RDMA devices, and their events, for `rdma-rpc devices -v` and `events`. Part of the
 * native boundary (native.ts).
 */

/** Attributes by their names in libibverbs. Values are decimal numbers or words. */
export type VerbsAttributes = Readonly<Record<string, string>>;

export interface VerbsPortDetails {
  readonly number: number;
  /** Attributes of the port; empty when the device does not report them. */
  readonly attributes: VerbsAttributes;
  /** The P_Keys by their index, without empty entries. */
  readonly pkeys: VerbsAttributes;
}

export interface VerbsDetails {
  readonly name: string;
  /** Why the device cannot be opened; empty when it can. */
  readonly whyNot: string;
  readonly attributes: VerbsAttributes;
  /** The names of its device_cap_flags, without IBV_DEVICE_. */
  readonly flags: readonly string[];
  readonly ports: readonly VerbsPortDetails[];
}

/** An event of a device or of one of its ports. */
export interface VerbsEvent {
  /** Such as `IBV_EVENT_PORT_ERR`. */
  readonly name: string;
  /** The description of libibverbs. */
  readonly text: string;
  /** 0 when the event concerns the device as a whole. */
  readonly port: number;
}

/** Receives the events of one device. */
export interface VerbsWatch {
  /** Takes the events that have come. */
  take(): VerbsEvent[];
  /** Closes the device. */
  close(): void;
}
