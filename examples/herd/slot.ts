/**
 * The layout of requests and answers, as in HERD (SIGCOMM 2014). A request lies at the end of its slot in the
 * server's memory: value, key, length, operation, and last the number that the server polls. A device writes
 * the bytes of one packet in increasing order, so the whole request is there once its number is there.
 *
 *     request   | ... value | key (16) | length (2) | operation (1) | 0 (1) | number (4) |  end of the slot
 *     answer    | number (4) | slot (2) | status (1) | 0 (1) | value ... |
 */
export const keyMax = 16;
export const trailerBytes = keyMax + 8;
export const answerHeadBytes = 8;
/** HERD's slots have 1 KiB. */
export const slotBytes = 1024;
export const valueMax = slotBytes - trailerBytes;

export const Operation = { get: 1, put: 2 } as const;
export const Status = { ok: 0, missing: 1, wrong: 2 } as const;

export interface Request {
  readonly operation: number;
  readonly key: string;
  readonly value: Uint8Array;
}

export const requestBytes = (value: Uint8Array): number => value.byteLength + trailerBytes;

/** Writes a request to the end of `room`, and returns the offset at which it begins. */
export function encodeRequest(room: Uint8Array, number: number, { operation, key, value }: Request): number {
  const at = room.byteLength - requestBytes(value);
  const keyAt = room.byteLength - trailerBytes;
  room.set(value, at);
  room.fill(0, keyAt);
  Buffer.from(room.buffer, room.byteOffset + keyAt, keyMax).write(key);
  const view = new DataView(room.buffer, room.byteOffset + keyAt + keyMax, 8);
  view.setUint16(0, value.byteLength);
  view.setUint8(2, operation);
  // The number has the byte order of this host, in which the server's CPU polls it.
  view.setUint32(4, number, true);
  return at;
}

/**
 * Reads a request from its slot. Clients may write any bytes there. Returns undefined when they are not a
 * request.
 */
export function decodeRequest(slot: Uint8Array): Request | undefined {
  const keyAt = slot.byteLength - trailerBytes;
  const view = new DataView(slot.buffer, slot.byteOffset + keyAt + keyMax, 8);
  const length = view.getUint16(0);
  const operation = view.getUint8(2);
  if (length > keyAt || (operation !== Operation.get && operation !== Operation.put)) return undefined;
  const key = Buffer.from(slot.buffer, slot.byteOffset + keyAt, keyMax);
  const end = key.indexOf(0);
  // The value is copied, because the next request overwrites it.
  return {
    operation,
    key: key.toString('utf8', 0, end < 0 ? keyMax : end),
    value: slot.slice(keyAt - length, keyAt),
  };
}
