/**
 * Method ids: the 32 bits that name a method on the wire. The generator and `defineService` make them; a
 * server checks them for collisions when a service is added.
 */

/**
 * Ids below are the protocol's own (docs/wire/frames.md): 0 is no method, 2 the messages that a client sends
 * on a stream.
 */
const reservedMethodIds = 256;

/** Of methods whose messages are not protobuf. No path has a `+`, so the id says the codec too. */
const suffixes = { PROTOBUF: '', MSGPACK: '+msgpack' } as const;

/** What messages can be on the wire. */
export type WireCodec = keyof typeof suffixes;

/**
 * 32-bit FNV-1a of the UTF-8 bytes of the path (with `+msgpack` behind it for MessagePack), unsigned; what
 * falls on a reserved id moves up by 256.
 */
export function methodId(path: string, codec: WireCodec = 'PROTOBUF'): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(path + suffixes[codec], 'utf8')) hash = Math.imul(hash ^ byte, 0x01000193);
  const id = hash >>> 0;
  return id < reservedMethodIds ? id + reservedMethodIds : id;
}
