/**
 * The async context in which functions of the application run, that is, what `AsyncLocalStorage.getStore()`
 * returns in them. This file is used on every JS thread, wherever such a function is called from an event, a
 * timer or the call of another caller.
 *
 * Connections, timers and batches of events serve many calls. Without scopes, a function would see the stores
 * of the caller that made the first call, and could answer one user with the data of another. Therefore a
 * function that belongs to a client's call runs in a scope that was captured when the call was made. Every
 * other function, including each handler, runs in the root scope, which has no stores.
 */
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import { nativeIfLoads } from '../native/native.ts';

/** Holds the stores that were current when the scope was created. */
export class Scope extends AsyncResource {
  constructor() {
    super('rdma-rpc');
  }

  /**
   * Tools that search for the resources that keep a process alive (Jest's --detectOpenHandles) call this
   * method. A scope never keeps a process alive.
   */
  hasRef(): boolean {
    return false;
  }

  /** Calls `fn` with the stores of this scope. */
  run<T>(fn: (...given: never) => T, self?: unknown, first?: unknown, second?: unknown): T {
    return runInAsyncScope.call(this, fn as unknown as (...given: unknown[]) => T, self, first, second) as T;
  }
}

const { runInAsyncScope } = AsyncResource.prototype;
/**
 * The context at import time, which usually has no stores. It serves as root in runtimes whose native code
 * cannot leave a context, and when the addon is missing.
 */
const atImport = new Scope();
/** The root scope. It is undefined until the first use, because creating it needs the addon. */
let root: Scope | undefined;
/** Stores that `enterWith()` has put on `root` itself. */
let strays: PropertyKey[] = [];

/**
 * In Node 20 and 22 a store is a property of the current AsyncResource. After `enterWith()` in one handler,
 * all later handlers in the root scope would therefore see that store. This proxy notices when such a
 * property is added, and costs nothing otherwise. From Node 24 on, stores are in a frame of V8
 * (AsyncContextFrame), which ends with `run`, and no property is added.
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
 * Returns whether the symbol is the property in which Node's AsyncResource keeps its frame. From Node 22 on
 * each AsyncResource has this property, even where stores are not in frames.
 */
const isFrame = ({ description }: symbol): boolean => description === 'context_frame';

/**
 * Returns whether stores are properties of `scope`, which depends on the runtime. Node has two
 * implementations of AsyncLocalStorage, and only the older implementation has the property `kResourceStore`.
 * It would also be possible to enter a store and to look where it is kept. This would work on any runtime,
 * but is the last resort. In Node 20 and 22, the first store of a process makes V8 run all promises with
 * hooks from then on, even after the store is disabled. These hooks take a tenth of the cost of a small call.
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
  // runInRoot also works while stores of the application are current.
  const native = process.versions.bun === undefined ? nativeIfLoads() : undefined;
  const made = native?.runInRoot(() => new Scope()) ?? atImport;
  if (made === atImport || !keepsStores(made)) return made;
  // Deletes the properties of stores, because the proxy would not notice a store whose property already
  // exists. The ids, which are numbers, and the frame stay: Node reads them in each run, and would otherwise
  // look them up in `watched`.
  for (const key of Object.getOwnPropertySymbols(made))
    if (typeof Reflect.get(made, key) !== 'number' && !isFrame(key)) Reflect.deleteProperty(made, key);
  return Object.setPrototypeOf(made, watched);
}

/** Calls `fn` without any store, and removes the stores that `fn` enters. */
export function inRoot<T>(fn: (...given: never) => T, self?: unknown, first?: unknown, second?: unknown): T {
  // If the current function runs in the root scope itself and has entered a store, that store is in `strays`,
  // and a new root is needed.
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

/** Returns a scope without stores, for the functions of one handler, which run one after another. */
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
