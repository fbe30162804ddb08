/**
 * The layout of the flight recorder's rows (native/telemetry/protocol_event.h) in counters pages and trace
 * files.
 */

export const eventRowBytes = 32;
/** Offset of the method id in a row. */
export const eventMethodAt = 20;
