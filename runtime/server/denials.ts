/**
 * Calls that `authorize` has denied, for the log and for the application's audit. Used by a server on its JS
 * thread.
 */
import { guardedInRoot } from '../core/foreign.ts';
import type { LimitedLog } from '../core/log.ts';
import type { DeniedCall } from './authorize.ts';
import type { ServerOptions } from './server-options.ts';

/** Of those of whom nothing is known, all that come from one address are one. */
const withoutPort = (address: string): string => address.replace(/:\d+$/, '');

/**
 * Clients can cause these lines, so the log has only so many a second for each of them; `onDenied` hears of
 * all.
 */
export function denialsTo(log: LimitedLog | undefined, { onDenied }: Pick<ServerOptions, 'onDenied'>) {
  return (call: DeniedCall): void => {
    const { peer, method } = call;
    const { identity, address } = peer;
    const who = identity === undefined ? `${address}, of whom nothing is known` : `${identity} at ${address}`;
    log?.write(`authorize has denied ${method} to ${who}`, identity ?? withoutPort(address));
    if (onDenied !== undefined) guardedInRoot('the function `onDenied`', () => onDenied(call));
  };
}
