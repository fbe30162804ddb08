/**
 * Limits of the codec. Encoders and decoders enforce the same limits, so that everything one side can encode
 * the other can decode.
 */

/**
 * Nesting depth of messages; deeper input is refused before it can exhaust the stack. Other protobuf
 * implementations use the same figure.
 */
export const nestingMax = 100;

/** Maximum length of a varint. */
export const varintBytesMax = 10;
