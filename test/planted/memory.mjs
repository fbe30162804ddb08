/** Bugs of native/memory, for main.mjs. */
const program = 'memory_test';

export const memoryBugs = [
  {
    name: 'the number of a block that has gone is used again first of all',
    file: 'memory/arena.cc',
    from: '      number = spare_slots_.front();\n      spare_slots_.pop_front();',
    to: '      number = spare_slots_.back();\n      spare_slots_.pop_back();',
    program,
    caughtBy: 'Arena.ANumberRestsUntilAllOtherFreeOnesHaveBeenUsed',
  },
  {
    name: 'a buffer that several calls use counts for each of them, and once when it is free',
    file: 'memory/mr_cache.cc',
    from: `      pinned_.splice(pinned_.begin(), idle_, entry);
      pinned_bytes_ += bytes;
    }
`,
    to: `      pinned_.splice(pinned_.begin(), idle_, entry);
    }
    pinned_bytes_ += bytes;
`,
    program,
    caughtBy: 'MrCacheTest.ABufferThatSeveralCallsUseCountsOnce',
  },
  {
    name: 'nobody sees that the memory of a buffer has gone which was registered in the background',
    file: 'memory/mr_cache.cc',
    from: '  region->set_presence(std::exchange(background.presence, nullptr));\n',
    to: '',
    program,
    caughtBy: 'BackgroundTest.ABufferWhoseMemoryGoesLaterIsSeenToHaveGone',
  },
];
