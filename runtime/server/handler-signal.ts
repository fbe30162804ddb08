/**
 * The signal of a handler's context. An EventTarget turns errors of listeners into uncaught exceptions, which
 * would end the process. Because this package fires the signal, each listener is wrapped like every other
 * function of the application. The contexts of handlers create it, here and over gRPC.
 */
import { guardedInRoot } from '../core/foreign.ts';

type Listener = Parameters<AbortSignal['addEventListener']>[1];
type Args = Parameters<AbortSignal['addEventListener']>;

const { addEventListener, removeEventListener } = EventTarget.prototype;
/**
 * The wrapper of each listener. A listener has a single wrapper, so that it can be removed and is added only
 * once.
 */
const wrappers = new WeakMap<object, (this: unknown, event: Event) => void>();
const handlers = new WeakMap<AbortSignal, AbortSignal['onabort']>();

function wrapped(listener: Listener): Listener {
  if (typeof listener !== 'function' && (typeof listener !== 'object' || listener === null)) return listener;
  let wrapper = wrappers.get(listener);
  if (wrapper === undefined) {
    wrapper = function (this: unknown, event: Event): void {
      guardedInRoot('a listener of context.signal', () =>
        typeof listener === 'function'
          ? listener.call(this as AbortSignal, event)
          : listener.handleEvent(event),
      );
    };
    wrappers.set(listener, wrapper);
  }
  return wrapper;
}

function add(this: AbortSignal, type: Args[0], listener: Args[1], options?: Args[2]): void {
  addEventListener.call(this, type, wrapped(listener), options);
}

function remove(this: AbortSignal, type: Args[0], listener: Args[1], options?: Args[2]): void {
  removeEventListener.call(this, type, wrapped(listener), options);
}

function callHandler(this: AbortSignal, event: Event): unknown {
  return handlers.get(this)?.call(this, event);
}

const own: PropertyDescriptorMap = {
  addEventListener: { value: add },
  removeEventListener: { value: remove },
  onabort: {
    get(this: AbortSignal) {
      return handlers.get(this) ?? null;
    },
    set(this: AbortSignal, handler: AbortSignal['onabort']) {
      handlers.set(this, typeof handler === 'function' ? handler : null);
      this.addEventListener('abort', callHandler);
    },
  },
};

/** Returns a controller whose signal is for a handler. */
export function handlerController(): AbortController {
  const controller = new AbortController();
  Object.defineProperties(controller.signal, own);
  return controller;
}
