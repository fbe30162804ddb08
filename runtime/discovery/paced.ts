/**
 * Passes the lists of a registry on to channels, and combines lists that come too fast. Checking a list of
 * 10,000 servers takes each channel tens of milliseconds, and a registry may send a thousand changes a
 * second. The first list is passed on at once. Then a pause follows whose length depends on the number of
 * servers, and after the pause only the newest list is passed on. watched.ts uses this file.
 */
import type { ServerAddress } from '../client/connections/servers.ts';
import { clockMs } from '../clock.ts';
import { listPauseMs } from './limits.ts';

export type Servers = readonly ServerAddress[];

export class Paced {
  readonly #onServers: (servers: Servers) => void;
  readonly #onFault: (fault: unknown) => void;
  #newest: () => Servers = () => [];
  #timer: NodeJS.Timeout | undefined;
  #nextMs = Number.NEGATIVE_INFINITY;

  /** `onFault` gets the error of a list that could not be made after a pause. */
  constructor(onServers: (servers: Servers) => void, onFault: (fault: unknown) => void) {
    this.#onServers = onServers;
    this.#onFault = onFault;
  }

  /** `list` is called when the list is passed on. Throws the errors of `list` if that is now. */
  changed(list: () => Servers): void {
    this.#newest = list;
    if (this.#timer !== undefined) return;
    const waitMs = this.#nextMs - clockMs();
    if (waitMs <= 0) this.#pass();
    else this.#timer = setTimeout(this.#later, waitMs).unref();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  readonly #later = (): void => {
    this.#timer = undefined;
    try {
      this.#pass();
    } catch (fault) {
      this.#onFault(fault);
    }
  };

  #pass(): void {
    const servers = this.#newest();
    this.#onServers(servers);
    this.#nextMs = clockMs() + servers.length * listPauseMs;
  }
}
