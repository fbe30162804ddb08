/** The gRPC status codes and their names. The codes are the numbers on the wire and in `RpcError.code`. */

export const Status = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

export type StatusName = keyof typeof Status;
export type StatusCode = (typeof Status)[StatusName];

const names = Object.keys(Status) as StatusName[];

/** Returns the name of a status code, or `UNKNOWN` for a number that is no status code. */
export function statusName(code: number): StatusName {
  return names[code] ?? 'UNKNOWN';
}

/** Converts a code received from a peer: any number that is not an error code becomes UNKNOWN. */
export function errorCode(code: number): StatusCode {
  return Number.isInteger(code) && code >= 1 && code < names.length ? (code as StatusCode) : Status.UNKNOWN;
}
