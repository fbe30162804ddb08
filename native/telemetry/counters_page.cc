// See counters_page.h. The page begins with 8 bytes of magic, a u32 version, a u32 with the length of the
// text, and two u64 of the thread (the time of its last event-loop iteration, and whether it is awake). At
// kTextAt a JSON text follows that describes the rest.
#include "telemetry/counters_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "telemetry/json.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace rdma_rpc::telemetry {
namespace {

constexpr char kMagic[8] = {'r', 'd', 'm', 'a', 'c', 'n', 't', 'r'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kThreadAt = 16, kTextAt = 64, kCountersAt = 8192;
constexpr std::size_t kSessionsAt = kCountersAt + kCountersMax * sizeof(std::uint64_t);
constexpr std::size_t kMethodsAt = kSessionsAt + kSessionRows * sizeof(SessionRow);
constexpr std::size_t kEventCountsAt = kMethodsAt + kMethodRows * sizeof(MethodRow);
constexpr std::size_t kPageOfSystem = 4096;
/// Each ring begins on a page of the system, so that a session with few events uses one page.
constexpr std::size_t kEventsAt = (kEventCountsAt + kEventRings * sizeof(std::uint64_t) + kPageOfSystem - 1) /
                                  kPageOfSystem * kPageOfSystem;
constexpr std::size_t kPageBytes = kEventsAt + std::size_t{kEventRings} * kEventRows * sizeof(EventRow);

/// Returns MAP_FAILED when the system refuses. `fd` stays open, because other processes find the memory
/// through it.
void* published_memory(int& fd) {
  fd = ::memfd_create("rdma-rpc-counters", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return MAP_FAILED;
  void* data = MAP_FAILED;
  if (::fchmod(fd, S_IRUSR | S_IWUSR) == 0 && ::ftruncate(fd, kPageBytes) == 0) {
    data = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  // The seals prevent other processes from shrinking the memory under this one, and from writing to it.
  // (Kernels before 5.1 lack FUTURE_WRITE.)
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW;
  if (data != MAP_FAILED && ::fcntl(fd, F_ADD_SEALS, seals | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0) {
    static_cast<void>(::fcntl(fd, F_ADD_SEALS, seals | F_SEAL_SEAL));
  }
  if (data == MAP_FAILED) ::close(std::exchange(fd, -1));
  return data;
}

constexpr const char* kSessionFields[] = {"state",      "number",  "client",    "inFlight",  "credits",
                                          "creditsMax", "waiting", "framesIn",  "framesOut", "bytesIn",
                                          "bytesOut",   "stalls",  "stalledNs", "security"};
constexpr const char* kMethodFields[] = {"id", "client", "calls", "failed", "totalNs"};
static_assert(sizeof kSessionFields / sizeof *kSessionFields * 8 == offsetof(SessionRow, peer));
static_assert(sizeof kMethodFields / sizeof *kMethodFields * 8 == offsetof(MethodRow, buckets));

}  // namespace

std::unique_ptr<CountersPage> CountersPage::open(bool published) {
  int fd = -1;
  void* data = published ? published_memory(fd) : MAP_FAILED;
  if (data == MAP_FAILED)
    data = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  std::unique_ptr<CountersPage> page(new CountersPage(fd, static_cast<std::byte*>(data)));
  page->latencies_ = std::make_unique<Latencies>(reinterpret_cast<MethodRow*>(page->data_ + kMethodsAt));
  return page;
}

CountersPage::~CountersPage() {
  ::munmap(data_, kPageBytes);
  if (fd_ >= 0) ::close(fd_);
}

void CountersPage::describe(std::span<const char* const> names, std::string_view fabric,
                            std::string_view device) {
  Json json;
  json.open().key("fabric").text(fabric).key("device").text(device);
  json.key("counters").open().number("at", kCountersAt);
  json.names("names", names.first(std::min(names.size(), kCountersMax))).close();
  json.key("sessions").open().number("at", kSessionsAt).number("rows", kSessionRows);
  json.number("stride", sizeof(SessionRow)).number("textAt", offsetof(SessionRow, peer));
  json.number("textBytes", kPeerNameBytes).names("fields", kSessionFields).close();
  json.key("methods").open().number("at", kMethodsAt).number("rows", kMethodRows);
  json.number("stride", sizeof(MethodRow)).number("textAt", offsetof(MethodRow, name));
  json.number("textBytes", kMethodNameBytes).number("bucketsAt", offsetof(MethodRow, buckets));
  json.number("buckets", kLatencyBuckets).number("perOctave", kBucketsPerOctave);
  json.number("unitNs", 1u << kTimeShift).names("fields", kMethodFields).close();
  json.key("events").open().number("at", kEventsAt).number("rings", kEventRings).number("rows", kEventRows);
  json.number("stride", sizeof(EventRow)).number("countsAt", kEventCountsAt).close().close();
  const std::string& text = json.all();
  if (text.size() > kCountersAt - kTextAt) return;  // without a length the page is not valid yet
  const auto bytes = static_cast<std::uint32_t>(text.size());
  std::memcpy(data_ + kTextAt, text.data(), text.size());
  std::memcpy(data_ + sizeof kMagic, &kVersion, sizeof kVersion);
  std::memcpy(data_ + sizeof kMagic + sizeof kVersion, &bytes, sizeof bytes);
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(data_, kMagic, sizeof kMagic);
}

std::uint64_t* CountersPage::counters() { return reinterpret_cast<std::uint64_t*>(data_ + kCountersAt); }
EventRings CountersPage::events() {
  return {reinterpret_cast<EventRow*>(data_ + kEventsAt),
          reinterpret_cast<std::uint64_t*>(data_ + kEventCountsAt)};
}
SessionRow* CountersPage::sessions() { return reinterpret_cast<SessionRow*>(data_ + kSessionsAt); }

void CountersPage::turn(std::uint64_t now_ns, bool awake) {
  auto* words = reinterpret_cast<std::uint64_t*>(data_ + kThreadAt);
  words[0] = now_ns;
  words[1] = awake ? 1 : 0;
}

}  // namespace rdma_rpc::telemetry
