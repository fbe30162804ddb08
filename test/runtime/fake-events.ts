/**
 * Builds the submissions and events that tests exchange with a scripted native side (fake-native.ts).
 */

export interface Submitted {
  op: number;
  session: number;
  call: number;
  method: number;
  metadata: Uint8Array;
  message: Uint8Array;
  timeoutUs: number;
  bulk: boolean;
  replyBuffer: number;
  gatherEntries: readonly Uint8Array[];
  keys: readonly number[];
}

export interface FakeEvent {
  kind: number;
  session?: number;
  call?: number;
  method?: number;
  metadata?: Uint8Array;
  message?: Uint8Array;
  /** The arena block that contains the message. */
  block?: number;
  aligned?: boolean;
  timeoutUs?: number;
  status?: number;
  held?: number;
  reason?: number;
  refusedBytes?: number;
  processed?: number;
  part?: number;
}

export interface FakeOptions {
  slots?: number;
  slotBytes?: number;
  arenaBytes?: number;
}
