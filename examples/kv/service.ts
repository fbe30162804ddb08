/**
 * The handlers of kv.proto on top of a store. They do not depend on the way in which a payload arrived,
 * because the runtime passes them bytes.
 */
import { RpcError, Status } from 'rdma-rpc';
import type { KvHandlers } from './gen/kv.rdma.ts';
import { Store } from './store.ts';

const keyMax = 256;

/**
 * Creates the handlers of the cache. `transport` returns the runtime's counters; it is called for each Stats
 * call.
 */
export function kvHandlers(budgetBytes: number, transport: () => Record<string, bigint>): KvHandlers {
  const store = new Store(budgetBytes);
  let hits = 0n;
  let misses = 0n;
  let refused = 0n;

  const checkKey = (key: string): void => {
    if (key.length > 0 && key.length <= keyMax) return;
    throw new RpcError(
      Status.INVALID_ARGUMENT,
      `a key has 1 to ${keyMax} characters, this one ${key.length}`,
    );
  };

  return {
    get({ key }) {
      const entry = store.get(key);
      if (entry === undefined) {
        misses++;
        return { found: false };
      }
      hits++;
      return { found: true, version: entry.version, value: entry.value };
    },

    put({ key, version, value }) {
      checkKey(key);
      const done = store.put(key, version, value);
      // The store has its own copy, because the memory of the request is released together with the call.
      if (done !== 'full') return { replaced: done === 'replaced' };
      refused++;
      throw new RpcError(
        Status.RESOURCE_EXHAUSTED,
        `${value.length} bytes do not fit: ${store.bytes} of ${store.budgetBytes} are in use. Delete something or raise KV_BUDGET_MIB`,
      );
    },

    delete({ key }) {
      return { deleted: store.delete(key) };
    },

    stats() {
      return {
        entries: store.size,
        bytes: BigInt(store.bytes),
        budgetBytes: BigInt(budgetBytes),
        hits,
        misses,
        refused,
        transport: transport(),
      };
    },
  };
}
