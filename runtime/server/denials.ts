/**
 * Reports calls that `authorize` has denied to the log and to the application. A server uses this file on its
 * JS thread.
 */
import { guardedInRoot } from '../core/foreign.ts';
import type { LimitedLog } from '../core/log.ts';
import type { DeniedCall } from './authorize.ts';
import type { ServerOptions } from './server-options.ts';

/** Returns the address without the port. Peers of one address without a known identity count as one peer. */
const withoutPort = (address: string): string => address.replace(/:\d+$/, '');

/**
 * Returns the function that reports denied calls. Clients can cause these log lines, so the log is
 * rate-limited for each client. `onDenied` is called for every denied call.
 */
export function denialsTo(log: LimitedLog | undefined, { onDenied }: Pick<ServerOptions, 'onDenied'>) {
  return (call: DeniedCall): void => {
    const { peer, method } = call;
    const { identity, address } = peer;
    const who = identity === undefined ? `${address}, without an identity` : `${identity} at ${address}`;
    log?.write(`authorize has denied ${method} to ${who}`, identity ?? withoutPort(address));
    if (onDenied !== undefined) guardedInRoot('the function `onDenied`', () => onDenied(call));
  };
}
