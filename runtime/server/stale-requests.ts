/**
 * Tells an application that reads a request after its call, whose memory has been given back: what it finds
 * there is empty. The first such requests of each method are looked at, as a handler does so in the first or
 * in none; one warning names the method, the field and what to do. Made by HandlerTable for each method, used
 * by RequestLease.
 */
import { isDetached } from '../codec/memory/lent.ts';
import { processWarning, type Warn } from '../core/warnings.ts';
import { watchedRequests } from '../limits.ts';

/** Of nested messages, and elements of a list or map. */
const depthMax = 4;
const elementsMax = 16;

export class StaleRequests {
  /** How many requests are still to be watched. */
  left: number = watchedRequests;
  #told = false;
  readonly #method: string;
  readonly #warn: Warn;

  constructor(method: string, warn: Warn = processWarning) {
    this.#method = method;
    this.#warn = warn;
  }

  /** The memory of this request has just been given back. */
  watch(request: object): void {
    if (this.left === 0) return;
    --this.left;
    try {
      this.#watchIn(request, '', 0);
    } catch {
      // A request that an application has frozen, say, tells nobody.
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
      `${this.#method}: \`${field}\` of a request was read when its call was over and its memory had been given back, so it is empty; ` +
        "call keep(request) in the handler (or set requestMemory: 'lease' for the server), or copy what is needed later. This is said once for each method.",
    );
  }
}
