/**
 * The rows of the flight recorder, as native/telemetry/protocol_event.h has them: in counters pages, and in
 * trace files.
 */

export const eventRowBytes = 32;
/** Where in a row the id of a method is. */
export const eventMethodAt = 20;
