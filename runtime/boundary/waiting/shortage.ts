/**
 * Texts about a shortage of arena memory in one context. They are for the errors of calls that have waited
 * too long, and for one warning. A FabricContext owns this object and uses it on its JS thread.
 */
import { processWarning } from '../../core/warnings.ts';
import type { NativeContext } from '../../native/native.ts';

export class Shortage {
  readonly #native: NativeContext;
  #warned = false;

  constructor(native: NativeContext) {
    this.#native = native;
  }

  /**
   * Returns an error text for a call that found no room for `bytes` bytes in the arena, with the remedy. If
   * `bytes` is 0, the call waited for a registration.
   */
  why(bytes: number): string {
    if (bytes === 0) return 'it waited for a large buffer to be registered with the device';
    this.warn();
    const { arenaLeasedBlocks, arenaLeasedBytes } = this.#native.stats();
    return (
      `it waited for ${bytes} bytes of the arena, of whose ${this.#native.arenaBytes} bytes (arenaBytes) ${arenaLeasedBlocks} leases and ` +
      `messages on their way hold ${arenaLeasedBytes}; give large messages back with leaseOf(message)?.release() and leases of ` +
      'allocBuffer() with release(), or raise arenaBytes in configure()'
    );
  }

  /** Warns once, because an application that keeps messages may not know that they hold arena memory. */
  warn(): void {
    if (this.#warned) return;
    this.#warned = true;
    const { arenaLeasedBlocks, arenaLeasedBytes } = this.#native.stats();
    processWarning(
      `calls wait for memory: ${arenaLeasedBlocks} leases and messages on their way hold ${arenaLeasedBytes} of the ` +
        `${this.#native.arenaBytes} bytes of this thread's arena (arenaBytes). Large messages hold their memory until leaseOf(message)?.release() ` +
        'or until they are collected; release() them earlier, or raise arenaBytes in configure(). This warning appears once.',
    );
  }
}
