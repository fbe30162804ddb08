/**
 * Method ids are the 32 bits that identify a method on the wire. The generator and `defineService` compute
 * them. A server checks them for collisions when a service is added.
 */

/**
 * Ids below this are reserved for the protocol (docs/wire/frames.md): 0 means no method, and 2 marks the
 * messages that a client sends on a stream.
 */
const reservedMethodIds = 256;

/**
 * Suffixes for methods whose messages are not protobuf. No path contains a `+`, so the id also identifies the
 * codec.
 */
const suffixes = { PROTOBUF: '', MSGPACK: '+msgpack' } as const;

/** The encodings of messages on the wire. */
export type WireCodec = keyof typeof suffixes;

/**
 * Returns the unsigned 32-bit FNV-1a hash of the path's UTF-8 bytes, followed by `+msgpack` for MessagePack.
 * It adds 256 to a reserved id.
 */
export function methodId(path: string, codec: WireCodec = 'PROTOBUF'): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(path + suffixes[codec], 'utf8')) hash = Math.imul(hash ^ byte, 0x01000193);
  const id = hash >>> 0;
  return id < reservedMethodIds ? id + reservedMethodIds : id;
}
