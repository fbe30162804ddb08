/**
 * The async context in which functions of the application run, that is, what `AsyncLocalStorage.getStore()`
 * returns in them. Used wherever such a function is called from an event, a timer or another caller's call,
 * on every JS thread.
 *
 * Connections, timers and batches of events serve many calls. Without this, a function would see the stores
 * of the caller that made the first call, and answer one user with the data of another. Therefore a function
 * that belongs to a client's call runs in a scope captured with the call, and every other function, including
 * handlers, in the root, which has no stores.
 */
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import { nativeIfLoads } from '../native/native.ts';

/** The stores that were current when it was created. */
export class Scope extends AsyncResource {
  constructor() {
    super('rdma-rpc');
  }

  /**
   * Called by tools that look for what keeps a process alive (Jest's --detectOpenHandles): a scope never
   * does.
   */
  hasRef(): boolean {
    return false;
  }

  /** Calls `fn` with these stores. */
  run<T>(fn: (...given: never) => T, self?: unknown, first?: unknown, second?: unknown): T {
    return runInAsyncScope.call(this, fn as unknown as (...given: unknown[]) => T, self, first, second) as T;
  }
}

const { runInAsyncScope } = AsyncResource.prototype;
/**
 * For runtimes whose native code cannot leave a context, and without the addon: the context at import time,
 * which usually has no stores.
 */
const atImport = new Scope();
/** Undefined until the addon is loaded, which is needed to create it. */
let root: Scope | undefined;
/** Stores that `enterWith()` has put on `root` itself. */
let strays: PropertyKey[] = [];

/**
 * Until Node 22 a store is a property of the resource that is being executed, so `enterWith()` in one handler
 * would show its store to all later ones in the root, for ever. This proxy notices such a property when it is
 * added, at no cost otherwise. Where stores are in a frame of V8 (AsyncContextFrame, from Node 24 on), the
 * frame ends with `run`, and this proxy sees nothing.
 */
const watched = new Proxy(Scope.prototype, {
  set(_target, key, value, receiver) {
    strays.push(key);
    return Reflect.defineProperty(receiver, key, {
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    });
  },
});

/**
 * Whether the symbol is the property in which Node's scopes keep a frame, from Node 22 on, whether or not
 * stores are in frames.
 */
const isFrame = ({ description }: symbol): boolean => description === 'context_frame';

/**
 * Whether stores are properties of `scope`, which depends on the runtime. Node's two implementations of
 * AsyncLocalStorage are distinguished by a property that only the older one has. Entering a store and
 * checking would work on any runtime, but in Node 20 and 22 the first store of a process makes V8 run all
 * promises with hooks from then on, even when it is disabled again, and that takes a tenth of the cost of a
 * small call.
 */
function keepsStores(scope: Scope): boolean {
  const storage = new AsyncLocalStorage<boolean>();
  if (Reflect.has(storage, 'kResourceStore')) return true;
  if (Object.getOwnPropertySymbols(scope).some(isFrame)) return false;
  scope.run(() => storage.enterWith(true));
  const kept = scope.run(() => storage.getStore()) === true;
  storage.disable();
  return kept;
}

function newRoot(): Scope {
  strays = [];
  // Also works inside a call of the application, whose stores are current then.
  const native = process.versions.bun === undefined ? nativeIfLoads() : undefined;
  const made = native?.runInRoot(() => new Scope()) ?? atImport;
  if (made === atImport || !keepsStores(made)) return made;
  // Deletes all properties except its ids, which are numbers: a store whose property already exists would not
  // be noticed. The properties that Node itself reads in each run stay, too, since they would be looked up in
  // `watched`.
  for (const key of Object.getOwnPropertySymbols(made))
    if (typeof Reflect.get(made, key) !== 'number' && !isFrame(key)) Reflect.deleteProperty(made, key);
  return Object.setPrototypeOf(made, watched);
}

/** Calls `fn` without any store, and lets no store that it enters escape. */
export function inRoot<T>(fn: (...given: never) => T, self?: unknown, first?: unknown, second?: unknown): T {
  // With strays when it is called within a function that runs in the root and has entered a store.
  if (root === undefined || strays.length !== 0) root = newRoot();
  try {
    return runInAsyncScope.call(root, fn as unknown as (...given: unknown[]) => T, self, first, second) as T;
  } finally {
    if (strays.length !== 0) {
      for (const key of strays) Reflect.deleteProperty(root, key);
      strays = [];
    }
  }
}

/** Returns a scope without stores, for functions of one handler that run one after the other. */
export function newScope(): Scope {
  return inRoot(() => new Scope());
}

/** Returns an iterable whose iterator runs in `scope`. */
export function iteratedIn(scope: Scope, messages: AsyncIterable<unknown>): AsyncIterable<unknown> {
  return {
    [Symbol.asyncIterator]: () => {
      const iterator = messages[Symbol.asyncIterator]();
      return {
        next: () => scope.run(iterator.next, iterator),
        return: async (value?: unknown) =>
          iterator.return === undefined ? { done: true, value } : scope.run(iterator.return, iterator, value),
      };
    },
  };
}
