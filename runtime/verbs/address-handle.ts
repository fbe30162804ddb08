/**
 * Address handles, which name the destinations of datagrams.
 */
import type { NativeVerbsDevice } from '../native/verbs-device.ts';
import { Resource } from './resource.ts';

/** Names a port or a multicast group (`struct ibv_ah_attr`). */
export interface AddressOptions {
  /** `Device.gid` of the peer, or the GID of a multicast group, of 16 bytes. */
  gid: Uint8Array;
  /** On InfiniBand: the LID of the peer's port. Default 0. */
  lid?: number;
  /** Default 0. */
  serviceLevel?: number;
  /** Default 0. */
  trafficClass?: number;
  /** Default 64. */
  hopLimit?: number;
}

/** An address handle (`struct ibv_ah`). See ibv_create_ah(3). */
export interface AddressHandle extends Disposable {
  readonly name: string;
  /** The number that `SendBatch.to` takes. */
  readonly number: number;
  readonly closed: boolean;
  /** Closes it (ibv_destroy_ah(3)). Posted datagrams keep it open until they have completed. */
  close(): void;
}

export class OpenAddressHandle extends Resource implements AddressHandle {
  readonly #native: NativeVerbsDevice;
  readonly #number: number;

  constructor(native: NativeVerbsDevice, device: string, number: number) {
    super(`address handle ${number} of ${device}`);
    this.#native = native;
    this.#number = number;
  }
  get number(): number {
    this.check();
    return this.#number;
  }
  protected override release(): void {
    this.#native.closeAh(this.#number);
  }
}
