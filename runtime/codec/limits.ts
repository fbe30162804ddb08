/**
 * Limits of the codec. Encoders and decoders enforce the same limits, so that everything one side can encode
 * the other can decode.
 */

/**
 * Maximum nesting depth of messages. Deeper input is refused before it can exhaust the stack. Other protobuf
 * implementations use the same limit.
 */
export const nestingMax = 100;

/** Maximum length of a varint. */
export const varintBytesMax = 10;
