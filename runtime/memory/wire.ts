/**
 * The messages between the two sides of a queue pair for remote memory, which are SENDs of 32 bytes. queue.ts
 * writes and reads them. docs/wire/connections.md, section 1.8, has the layout and the rules.
 */

export const memoryMessageBytes = 32;

export const Kind = {
  hello: 1,
  open: 2,
  opened: 3,
  gone: 4,
  revoke: 5,
  revoked: 6,
  written: 7,
  credit: 8,
} as const;
export type Kind = (typeof Kind)[keyof typeof Kind];
const lastKind = Kind.credit;

/** The bits of `rights`. */
export const Right = { read: 1, write: 2, atomic: 4 } as const;

export interface Message {
  readonly kind: Kind;
  /** The exposure that the message concerns. */
  readonly id: number;
  /** The rights in `opened`, as bits of Right. */
  readonly rights?: number;
  /** The address of the first byte in `opened`; an offset in `written`. */
  readonly position?: number;
  readonly byteLength?: number;
  /** The remote key in `opened`; the immediate in `written`. */
  readonly value?: number;
}

/** Writes the message and the number of credits that it returns. */
export function writeMessage(to: DataView, at: number, message: Message, credits: number): void {
  const { kind, id, rights = 0, position = 0, byteLength = 0, value = 0 } = message;
  to.setUint8(at, kind);
  to.setUint8(at + 1, rights);
  to.setUint16(at + 2, credits, true);
  to.setUint32(at + 4, id, true);
  to.setBigUint64(at + 8, BigInt(position), true);
  to.setBigUint64(at + 16, BigInt(byteLength), true);
  to.setUint32(at + 24, value, true);
  to.setUint32(at + 28, 0, true);
}

/**
 * Reads a message of a peer. Returns the reason when the bytes are not a message or have fields out of range.
 */
export function readMessage(
  from: DataView,
  at: number,
): { readonly message: Required<Message>; readonly credits: number } | string {
  const kind = from.getUint8(at);
  const rights = from.getUint8(at + 1);
  const position = Number(from.getBigUint64(at + 8, true));
  const byteLength = Number(from.getBigUint64(at + 16, true));
  if (kind < Kind.hello || kind > lastKind) return `a message of the unknown kind ${kind}`;
  if (rights > (Right.read | Right.write | Right.atomic))
    return `a message with the unknown rights ${rights}`;
  if (position + byteLength > Number.MAX_SAFE_INTEGER) return 'a message with a range beyond 2^53';
  return {
    message: {
      kind: kind as Kind,
      id: from.getUint32(at + 4, true),
      rights,
      position,
      byteLength,
      value: from.getUint32(at + 24, true),
    },
    credits: from.getUint16(at + 2, true),
  };
}
