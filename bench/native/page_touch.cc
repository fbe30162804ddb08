// Measures the cost of memory that is not in the caches of this machine. It is the time of one load after
// another, each from a different line: first from adjacent lines, and then from one line in each page. The
// second case is that of calls over many sessions, because each session has pages of its own. Run it by hand:
//
//   build/bench/page_touch [LINES …]     default 1024 4096 8192 16384 32768
//
// The lines of the second case have random offsets in their pages. At the same offset in each page, they
// would share a few cache sets. Pages have 4 KiB here, even on machines with larger pages.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kLoads = 2'000'000;
constexpr int kRounds = 5;

struct Line {
  const Line* next;
};

/// Prevents the compiler from removing the loads.
const Line* volatile last;

double ns_of_load(std::size_t lines, std::size_t stride, std::mt19937& random) {
  const std::size_t bytes = lines * stride;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  ::madvise(memory, bytes, MADV_NOHUGEPAGE);
  std::vector<Line*> order;
  for (std::size_t i = 0; i < lines; ++i) {
    const std::size_t at = i * stride + random() % (stride / kLineBytes) * kLineBytes;
    order.push_back(reinterpret_cast<Line*>(static_cast<std::byte*>(memory) + at));
  }
  std::shuffle(order.begin(), order.end(), random);
  for (std::size_t i = 0; i < lines; ++i) order[i]->next = order[(i + 1) % lines];
  const Line* line = order[0];
  for (std::size_t i = 0; i < 4 * lines; ++i) line = line->next;
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const auto from = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < kLoads; ++i) line = line->next;
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - from;
    rounds.push_back(took.count() / static_cast<double>(kLoads));
  }
  last = line;
  ::munmap(memory, bytes);
  std::sort(rounds.begin(), rounds.end());
  return rounds[kRounds / 2];
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::size_t> counts{1024, 4096, 8192, 16384, 32768};
  if (argc > 1) counts.clear();
  for (int i = 1; i < argc; ++i) counts.push_back(std::strtoull(argv[i], nullptr, 10));
  std::mt19937 random(1);
  for (const std::size_t lines : counts) {
    if (lines == 0) {
      std::fprintf(stderr, "page_touch: LINES are numbers from 1 on\n");
      return 1;
    }
    std::printf("%6zu lines: %6.1f ns a load side by side, %6.1f ns one in each page\n", lines,
                ns_of_load(lines, kLineBytes, random), ns_of_load(lines, kPageBytes, random));
  }
  return 0;
}
