/**
 * Warns an application that reads a request after the request's call, when the memory has been released and
 * the values are empty. Only the first requests of each method are watched, because a handler with this
 * mistake usually makes it in the first requests. One warning names the method, the field and the remedy.
 * HandlerTable creates this object for each method, and RequestLease uses it.
 */
import { isDetached } from '../codec/memory/lent.ts';
import { processWarning, type Warn } from '../core/warnings.ts';
import { watchedRequests } from '../limits.ts';

/** Depth up to which nested messages and elements of lists and maps are watched. */
const depthMax = 4;
const elementsMax = 16;

export class StaleRequests {
  /** Number of requests that are still to be watched. */
  left: number = watchedRequests;
  #told = false;
  readonly #method: string;
  readonly #warn: Warn;

  constructor(method: string, warn: Warn = processWarning) {
    this.#method = method;
    this.#warn = warn;
  }

  /** Watches a request whose memory has just been released. */
  watch(request: object): void {
    if (this.left === 0) return;
    --this.left;
    try {
      this.#watchIn(request, '', 0);
    } catch {
      // Some requests cannot be watched, for example a request that the application has frozen.
    }
  }

  #watchIn(holder: object, path: string, depth: number): void {
    for (const key of Object.keys(holder).slice(0, elementsMax)) {
      const own = Object.getOwnPropertyDescriptor(holder, key);
      const value: unknown = own?.value;
      if (typeof value !== 'object' || value === null) continue;
      const field = Array.isArray(holder) ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`;
      if (!ArrayBuffer.isView(value)) {
        if (depth < depthMax) this.#watchIn(value, field, depth + 1);
      } else if (own?.configurable === true && value.byteLength === 0 && isDetached(value)) {
        this.#watchField(holder, key, field, value);
      }
    }
  }

  #watchField(holder: object, key: string, field: string, value: ArrayBufferView): void {
    const put = (now: unknown): void => {
      Object.defineProperty(holder, key, {
        value: now,
        writable: true,
        enumerable: true,
        configurable: true,
      });
    };
    const get = (): ArrayBufferView => {
      put(value);
      this.#tell(field);
      return value;
    };
    Object.defineProperty(holder, key, { get, set: put, enumerable: true, configurable: true });
  }

  #tell(field: string): void {
    if (this.#told) return;
    this.#told = true;
    this.left = 0;
    this.#warn(
      `${this.#method}: \`${field}\` of a request was read after the call had ended and the memory of the request had been released, so the value is empty; ` +
        "call keep(request) in the handler, set the server option requestMemory: 'lease', or copy the value during the call. This warning appears once for each method.",
    );
  }
}
