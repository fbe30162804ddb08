/**
 * The open sockets of programs at one end of a tunnel. An end that drains waits for them, because a program
 * may still have to read its last bytes when the stream to the other end has ended.
 */
import type { Socket } from 'node:net';
import { reset } from './program-side.ts';

export class Programs {
  readonly #open = new Set<Socket>();

  /** Remembers the socket until it is closed, and returns the socket. */
  add(program: Socket): Socket {
    this.#open.add(program);
    program.once('close', () => this.#open.delete(program));
    return program;
  }

  /** Resolves when all sockets that are open now are closed. */
  async closed(): Promise<void> {
    await Promise.all([...this.#open].map((each) => new Promise((resolve) => each.once('close', resolve))));
  }

  /** Resets the sockets, so that no program mistakes partial data for complete data. */
  reset(): void {
    for (const program of this.#open) reset(program);
  }
}
