/** Tests house rules of the native layers that the compiler does not know. */
import { describe, expect, test } from 'vitest';
import { projectFiles, read } from './tree.ts';

const sources = projectFiles().filter((file) => /^native\/(session|memory|fabric)\/.*\.(h|cc)$/.test(file));
const code = (file: string) => read(file).replace(/\/\/.*/g, '');

describe('an entry that is taken from a free list', () => {
  /**
   * Lines that take an entry from the end of a container without FreeList, with the reason why the container
   * is not empty. Every other line that takes an entry from a list may meet a list that a peer has emptied.
   * Such a line must use FreeList::take() and check its result.
   */
  const LOOKED_AT: Readonly<Record<string, readonly string[]>> = {
    // This line is the list itself.
    'native/fabric/free_list.h': ['items_.pop_back();'],
    // This line is inside a loop or branch that ends when the queue is empty.
    'native/session/event_queue.h': ['later_.pop_front()'],
    'native/fabric/sim/unreliable.cc': ['inbox_.pop_front();'],
    'native/session/server/transfers.cc': ['landings_.pop_front();'],
    // The function returns earlier when it does not find the entry.
    'native/session/server/unread_streams.h': ['streams_.pop_back();'],
    'native/fabric/rights.cc': ['all.waiting.pop_front();'],
    'native/fabric/shm/queue/queue_pair_table.cc': ['with_file_.pop_front();'],
    'native/fabric/sim/world.cc': ['events_.pop_back();'],
    'native/fabric/verbs/soft/rxe.cc': ['pending_.pop_front();'],
    'native/memory/arena.cc': ['spare_slots_.pop_front();'],
    // The line takes the entry that was added just before.
    'native/session/client/reply_buffers.cc': ['deferred_.pop_back();'],
    'native/session/session_table.cc': ['free_.pop_front();'],
    'native/fabric/tcp/connect/lingering_sockets.cc': ['open_.pop_front();', 'open_.pop_back();'],
    'native/fabric/tcp/connect/listener.cc': ['pending_.pop_front();', 'pending_.pop_back();'],
    'native/fabric/verbs/queue/completion_queue.cc': ['device_cqs_.pop_back();'],
  };

  test('comes from FreeList::take(), which returns whether there was one', () => {
    const found: Record<string, string[]> = {};
    for (const file of sources) {
      const takes = [...code(file).matchAll(/[\w.>-]+\.pop_(?:back|front)\(\);?/g)].map((match) => match[0]);
      if (takes.length > 0) found[file] = takes;
    }
    expect(found).toEqual(LOOKED_AT);
  });

  test('is checked before it is used', () => {
    const blind = /\*\s*[\w.>-]+\.take(_spill_slot)?\([^)]*\)|\.take(_spill_slot)?\([^)]*\)(\.value\(\)|->)/;
    expect(sources.filter((file) => blind.test(code(file)))).toEqual([]);
    expect(blind.test('const slot = *link_.take_spill_slot();')).toBe(true);
    expect(blind.test('return free_.take().value();')).toBe(true);
    expect(blind.test('if (const auto slot = free_.take()) return *slot;')).toBe(false);
  });
});
