/**
 * The control messages of Valkey over RDMA: 32 bytes each, big-endian, sent by SEND. "Protocol" of
 * valkey.io/topics/RDMA defines their meaning. Both sides use them.
 */

export const controlBytes = 32;

export const Opcode = {
  getServerFeature: 0,
  setClientFeature: 1,
  keepalive: 2,
  registerXferMemory: 3,
} as const;

export type Control =
  | {
      readonly opcode: typeof Opcode.getServerFeature | typeof Opcode.setClientFeature;
      /** The group of features. */
      readonly select: number;
      readonly features: bigint;
    }
  | { readonly opcode: typeof Opcode.keepalive }
  | {
      /** The memory into which the peer may WRITE the bytes of the stream. */
      readonly opcode: typeof Opcode.registerXferMemory;
      readonly addr: number;
      readonly length: number;
      readonly key: number;
    };

/** Offsets of the fields. */
const at = { opcode: 0, select: 2, features: 24, addr: 16, length: 24, key: 28 } as const;

export function encodeControl(into: Uint8Array, message: Control): void {
  into.fill(0, 0, controlBytes);
  const view = new DataView(into.buffer, into.byteOffset, controlBytes);
  view.setUint16(at.opcode, message.opcode);
  if (message.opcode === Opcode.registerXferMemory) {
    view.setBigUint64(at.addr, BigInt(message.addr));
    view.setUint32(at.length, message.length);
    view.setUint32(at.key, message.key);
  } else if (message.opcode !== Opcode.keepalive) {
    view.setUint16(at.select, message.select);
    view.setBigUint64(at.features, message.features);
  }
}

/** Throws for bytes that are not a control message, because the peer may be any program. */
export function decodeControl(bytes: Uint8Array): Control {
  if (bytes.byteLength !== controlBytes)
    throw new Error(`a control message has ${controlBytes} bytes, and this one has ${bytes.byteLength}`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, controlBytes);
  const opcode = view.getUint16(at.opcode);
  switch (opcode) {
    case Opcode.getServerFeature:
    case Opcode.setClientFeature:
      return { opcode, select: view.getUint16(at.select), features: view.getBigUint64(at.features) };
    case Opcode.keepalive:
      return { opcode };
    case Opcode.registerXferMemory: {
      const addr = view.getBigUint64(at.addr);
      const length = view.getUint32(at.length);
      if (addr > BigInt(Number.MAX_SAFE_INTEGER) || length === 0)
        throw new Error('the peer has sent an address that cannot be');
      return { opcode, addr: Number(addr), length, key: view.getUint32(at.key) };
    }
    default:
      throw new Error(`the peer has sent a control message with the unknown opcode ${opcode}`);
  }
}
