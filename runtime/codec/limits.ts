/** Limits of the codec. Both directions keep them, so that what one side can encode the other can decode. */

/**
 * Messages inside messages; deeper input is refused before it can exhaust the stack. The figure that protobuf
 * implementations share.
 */
export const nestingMax = 100;

/** A varint never has more bytes. */
export const varintBytesMax = 10;
