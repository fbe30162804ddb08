/**
 * The common parts of all objects of `rdma-rpc/verbs`: a name, and the way in which the object is closed.
 * Once an object is closed, its methods throw an error with its name. It is used on the thread that opened
 * the device.
 */
import { closedError } from './errors.ts';

export abstract class Resource {
  readonly name: string;
  #isOpen = true;
  #onClose: (() => void) | undefined;

  constructor(name: string) {
    this.name = name;
  }

  get closed(): boolean {
    return !this.#isOpen;
  }
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.release();
    this.#onClose?.();
  }
  /** Calls `then` when the object has been closed. */
  onClose(then: () => void): void {
    this.#onClose = then;
  }
  [Symbol.dispose](): void {
    this.close();
  }

  /** Throws when the object was closed. */
  check(): void {
    if (!this.#isOpen) throw closedError(this.name);
  }
  protected abstract release(): void;
}
