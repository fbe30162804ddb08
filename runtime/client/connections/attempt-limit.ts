/** The time limit of an attempt to connect. Used by the endpoints of a channel, on its JS thread. */

/** Aborts an attempt that takes too long. The caller stops the returned timer when the attempt has ended. */
export function attemptLimit(connectTimeoutMs: number, abandon: AbortController): NodeJS.Timeout {
  const late = `no answer within ${connectTimeoutMs} ms (option connectTimeoutMs of the channel)`;
  return setTimeout(() => abandon.abort(new Error(late)), connectTimeoutMs);
}
