/**
 * Connections that no worker has taken yet. A connection is first offered to the worker with the fewest
 * connections. The connection goes to the first worker that answers. A busy thread does not answer, and must
 * not get connections in this time. A WorkerGroup owns this object and uses it on the main thread.
 */
import type { Socket } from 'node:net';
import { Link } from '../control/link.ts';
import { Status } from '../core/errors/status.ts';
import { workerAnswerMs, workerWaiting, workerWaitMs } from './limits.ts';

/** The part of a worker that this file uses. */
export interface Place {
  /** Whether the worker takes connections. */
  readonly up: boolean;
  readonly connections: number;
  /** Asks whether the worker's thread is free. The worker's answer leads to a call of `Unplaced.here`. */
  ask(): void;
  take(socket: Socket, peer: string): void;
}

interface Waiting {
  readonly socket: Socket;
  readonly peer: string;
  readonly asked: Set<Place>;
  readonly onClose: () => void;
  /** The timer that runs until the next worker is asked. */
  timer: NodeJS.Timeout | undefined;
  readonly end: NodeJS.Timeout;
}

/** A worker that has been asked and has not answered. */
interface Asked {
  readonly waiting: Set<Waiting>;
  /** True when the worker has not answered for a while. Other workers are then asked first. */
  silent: boolean;
}

export class Unplaced {
  readonly #places: readonly Place[];
  readonly #waiting = new Set<Waiting>();
  readonly #asked = new Map<Place, Asked>();
  #next = 0;

  constructor(places: readonly Place[]) {
    this.#places = places;
  }

  /** Number of waiting connections. */
  get size(): number {
    return this.#waiting.size;
  }

  add(socket: Socket, peer: string): void {
    // Errors are handled, because the loss of a waiting connection must not be an uncaught error.
    socket.on('error', () => undefined);
    if (!this.#places.some(({ up }) => up)) {
      refuse(socket, 'no worker of this server is up; try again soon');
      return;
    }
    if (this.#waiting.size >= workerWaiting) {
      refuse(socket, `${workerWaiting} connections wait for a worker that answers; try again later`);
      return;
    }
    const late = `no worker of this server has answered within ${workerWaitMs} ms: all of them are busy`;
    const one: Waiting = {
      socket,
      peer,
      asked: new Set(),
      onClose: () => this.#leave(one),
      timer: undefined,
      end: setTimeout(() => this.#refuse(one, late), workerWaitMs).unref(),
    };
    this.#waiting.add(one);
    socket.once('close', one.onClose);
    ++this.#next;
    this.#askNext(one);
  }

  /**
   * Gives a connection to a worker that has answered. The worker gets one connection at a time, so that all
   * workers that answer share the waiting connections.
   */
  here(place: Place): void {
    const asked = this.#asked.get(place);
    this.#asked.delete(place);
    if (asked === undefined) return;
    const [first] = asked.waiting;
    if (first === undefined) return;
    this.#leave(first);
    asked.waiting.delete(first);
    place.take(first.socket, first.peer);
    if (asked.waiting.size === 0) return;
    this.#asked.set(place, { waiting: asked.waiting, silent: false });
    place.ask();
  }

  /** Must be called when the worker starts or stops taking connections. */
  changed(place: Place): void {
    const asked = this.#asked.get(place);
    this.#asked.delete(place);
    for (const one of asked?.waiting ?? []) one.asked.delete(place);
    for (const one of [...this.#waiting]) {
      if (this.#places.some(({ up }) => up)) this.#askNext(one);
      else this.#refuse(one, 'no worker of this server is up; try again soon');
    }
  }

  /** Rejects all waiting connections. */
  refuseAll(why: string): void {
    for (const one of [...this.#waiting]) this.#refuse(one, why);
  }

  /**
   * Asks the worker with the fewest connections. Connections that are being offered to a worker are also
   * counted. If that worker does not answer, asks all workers.
   */
  #askNext(one: Waiting): void {
    clearTimeout(one.timer);
    for (;;) {
      const best = this.#best(one);
      if (best === undefined) return;
      const silent = this.#asked.get(best)?.silent === true;
      this.#ask(best, one);
      if (silent) continue;
      one.timer = setTimeout(() => {
        const asked = this.#asked.get(best);
        if (asked?.waiting.has(one) === true) asked.silent = true;
        this.#askNext(one);
      }, workerAnswerMs).unref();
      return;
    }
  }

  #best(one: Waiting): Place | undefined {
    let best: Place | undefined;
    let bestLoad = Number.POSITIVE_INFINITY;
    // The search begins with another worker each time, so that workers with equal numbers of connections take
    // turns.
    for (let i = 0; i < this.#places.length; ++i) {
      const place = this.#places[(this.#next + i) % this.#places.length]!;
      if (!place.up || one.asked.has(place)) continue;
      const asked = this.#asked.get(place);
      const load = asked?.silent === true ? Number.MAX_VALUE : place.connections + (asked?.waiting.size ?? 0);
      if (load >= bestLoad) continue;
      best = place;
      bestLoad = load;
    }
    return best;
  }

  #ask(place: Place, one: Waiting): void {
    one.asked.add(place);
    const asked = this.#asked.get(place);
    if (asked !== undefined) {
      asked.waiting.add(one);
      return;
    }
    this.#asked.set(place, { waiting: new Set([one]), silent: false });
    place.ask();
  }

  #refuse(one: Waiting, why: string): void {
    this.#leave(one);
    refuse(one.socket, why);
  }

  #leave(one: Waiting): void {
    clearTimeout(one.timer);
    clearTimeout(one.end);
    one.socket.off('close', one.onClose);
    this.#waiting.delete(one);
    for (const place of one.asked) this.#asked.get(place)?.waiting.delete(one);
  }
}

function refuse(socket: Socket, message: string): void {
  new Link(socket).close(message, { type: 'refusal', code: Status.UNAVAILABLE, message });
}
