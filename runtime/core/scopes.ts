/**
 * In which async context functions of the application run: what `AsyncLocalStorage.getStore()` gives them.
 * Used wherever such a function is called from an event, a timer or the call of somebody else, on every JS
 * thread.
 *
 * Connections, timers and batches of events serve many calls. Without this, a function would see the stores
 * of the caller that made the first call, and answer one user with the data of another. So a function that
 * belongs to a call of a client runs in a scope that was taken with the call, and every other one, handlers
 * too, in the root, which has no stores.
 */
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import { loadNative } from '../native/native.ts';

/** The stores that were current when it was made. */
export class Scope extends AsyncResource {
  constructor() {
    super('rdma-rpc');
  }

  /**
   * Tools that look for what keeps a process alive (Jest's --detectOpenHandles) ask for this: a scope never
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
/** For runtimes whose native code cannot leave a context, and where there is no addon: mostly nobody's. */
const atImport = new Scope();
/** Until then there is no addon to make it with. */
let root: Scope | undefined;
/** Stores that were put on `root` itself. */
let strays: PropertyKey[] = [];

/**
 * Until Node 22 a store is a property of the resource that is being executed, so `enterWith()` in one handler
 * would show its store to all that follow it in the root, and keep it for ever. Here such a property is seen
 * when it comes, for nothing when none comes. Where stores are in a frame of V8's (AsyncContextFrame, from
 * Node 24 on), the end of `run` takes the frame away, and this sees nothing.
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
 * Of the property in which Node's scopes keep a frame, from Node 22 on, whether or not stores are in frames.
 */
const isFrame = ({ description }: symbol): boolean => description === 'context_frame';

/**
 * Whether stores are properties of `scope`, which tells how this runtime keeps them. Node's two makings of
 * AsyncLocalStorage are told apart by a property that only the older one has. To enter a store and look tells
 * it of any runtime, but in Node 20 and 22 the first store of a process makes V8 run all promises with hooks
 * from then on, even when it is disabled again, and that takes a tenth of what a small call costs.
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
  let made = atImport;
  try {
    // Also in the midst of a call of the application, whose stores are then the current ones.
    if (process.versions.bun === undefined) made = loadNative().runInRoot(() => new Scope());
  } catch {
    // Whoever needs the addon says so.
  }
  if (made === atImport || !keepsStores(made)) return made;
  // All but its ids, which are numbers: a store that has a property already would not be seen. What Node
  // itself reads in each run stays, too, as it would be looked for in `watched`.
  for (const key of Object.getOwnPropertySymbols(made))
    if (typeof Reflect.get(made, key) !== 'number' && !isFrame(key)) Reflect.deleteProperty(made, key);
  return Object.setPrototypeOf(made, watched);
}

/** Calls `fn` without any store, and lets none that it enters out. */
export function inRoot<T>(fn: (...given: never) => T, self?: unknown, first?: unknown, second?: unknown): T {
  // With strays: within a function that runs in the root and has entered a store.
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

/** A scope without stores, for functions of one handler that run one after the other. */
export function newScope(): Scope {
  return inRoot(() => new Scope());
}

/** An iterable whose iterator runs in `scope`. */
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
