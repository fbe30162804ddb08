// Tests descriptors that unauthenticated peers send with their bytes. The kernel refuses them if it can. On
// other kernels, only dedicated threads wait for the last close of the descriptors.
#include "fabric/rights.h"

#include <poll.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include "fabric/acceptor.h"
#include "fabric/lingering.h"
#include "fabric/socket_relay.h"

namespace rdma_rpc::fabric::test {
namespace {

struct Ends {
  UniqueFd here, there;
};
Ends unix_pair() {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// Reads at most `bytes` bytes, and waits for the first one. Returns an empty text at the end.
std::string hear(const UniqueFd& fd, std::size_t bytes = 4096) {
  pollfd wait{fd.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&wait, 1, static_cast<int>(std::chrono::milliseconds(kLinger).count())), 1);
  std::string heard(bytes, '\0');
  const ssize_t got = ::recv(fd.get(), heard.data(), heard.size(), 0);
  heard.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return heard;
}
void tell(const UniqueFd& fd, const std::string& what) {
  EXPECT_EQ(::send(fd.get(), what.data(), what.size(), MSG_NOSIGNAL), static_cast<ssize_t>(what.size()));
}
void wait_until_closed() {
  while (being_closed() > 0) std::this_thread::yield();
}

TEST(Rights, TheKernelRefusesThemToTheirSender) {
  if (!kernel_refuses_rights()) GTEST_SKIP() << "this kernel cannot (SO_PASSRIGHTS is of Linux 6.16)";
  const auto [here, there] = unix_pair();
  ASSERT_TRUE(refuse_rights(here.get()));
  EXPECT_FALSE(send_files(there.get(), {here.get()}));
  EXPECT_EQ(errno, EPERM);
  tell(there, "bytes");
  EXPECT_EQ(hear(here), "bytes");
  allow_rights(here.get());
  EXPECT_TRUE(send_files(there.get(), {here.get()}));
}

TEST(Rights, ALingeringFileIsClosedOnAnotherThreadAtOnce) {
  Lingering lingering;
  EXPECT_LT(time_of([&] {
              close_elsewhere(lingering.give());
              wait_until_closed();
            }),
            kAtOnce);
}

TEST(Rights, AllReceivedFilesAreTaken) {
  const auto [here, there] = unix_pair();
  ASSERT_TRUE(send_files(there.get(), std::vector<int>(253, here.get())));
  std::vector<ForeignFd> files;
  bool cut = true;
  char byte = 0;
  EXPECT_EQ(receive_with_rights(here.get(), &byte, 1, &files, &cut), 1);
  EXPECT_EQ(files.size(), 253u);
  EXPECT_FALSE(cut);
  files.clear();
  wait_until_closed();
}

TEST(SocketRelay, PassesBytesBothWaysAndTheEndOfEither) {
  auto [here, there] = unix_pair();
  UniqueFd end = relay_bytes(ForeignFd(std::move(here)));
  ASSERT_TRUE(end);
  tell(there, "hello");
  EXPECT_EQ(hear(end), "hello");
  tell(end, "welcome");
  EXPECT_EQ(hear(there), "welcome");
  tell(there, "that is all");
  ::shutdown(there.get(), SHUT_WR);
  EXPECT_EQ(hear(end), "that is all");
  EXPECT_EQ(hear(end), "");
  tell(end, "good-bye");
  end.reset();
  EXPECT_EQ(hear(there), "good-bye");
  EXPECT_EQ(hear(there), "");
}

TEST(SocketRelay, WithoutAReaderKeepsTheSentBytes) {
  auto [here, there] = unix_pair();
  const UniqueFd end = relay_bytes(ForeignFd(std::move(here)));
  constexpr std::size_t kBytes = 4 << 20;
  std::thread sender([&far = there] {
    for (std::size_t sent = 0; sent < kBytes;) {
      const std::string more(std::min<std::size_t>(10'000, kBytes - sent), static_cast<char>(sent % 251));
      pollfd wait{far.get(), POLLOUT, 0};
      ::poll(&wait, 1, -1);
      const ssize_t took = ::send(far.get(), more.data(), more.size(), MSG_NOSIGNAL);
      if (took > 0) sent += static_cast<std::size_t>(took);
    }
    ::shutdown(far.get(), SHUT_WR);
  });
  std::size_t heard = 0;
  for (std::string some; !(some = hear(end)).empty();) heard += some.size();
  sender.join();
  EXPECT_EQ(heard, kBytes);
}

TEST(SocketRelay, EndsAConnectionThatBringsADescriptorAndItsReaderWaitsForNothing) {
  auto [here, there] = unix_pair();
  const UniqueFd end = relay_bytes(ForeignFd(std::move(here)));
  Lingering lingering;
  ASSERT_TRUE(send_files(there.get(), {lingering.give().get()}));
  EXPECT_LT(time_of([&] { EXPECT_EQ(hear(end), ""); }), kAtOnce);
  EXPECT_EQ(hear(there), "");
  wait_until_closed();
}

TEST(SocketRelay, ServesOthersWhileOneIsFullOfDescriptors) {
  auto [bad, sender] = unix_pair();
  auto [good, friendly] = unix_pair();
  Lingering first, second;
  {
    const UniqueFd one = first.give(), other = second.give();
    ASSERT_TRUE(send_files(sender.get(), {one.get()}));
    ASSERT_TRUE(send_files(sender.get(), {other.get()}));
  }
  // The second descriptor is never read, and is closed with its connection.
  EXPECT_LT(time_of([&] {
              const UniqueFd bad_end = relay_bytes(ForeignFd(std::move(bad)));
              const UniqueFd good_end = relay_bytes(ForeignFd(std::move(good)));
              tell(friendly, "hello");
              EXPECT_EQ(hear(good_end), "hello");
              EXPECT_EQ(hear(bad_end), "");
            }),
            kAtOnce);
}

TEST(SocketRelay, HandsOverTheConnectionItselfOnRequest) {
  auto [here, there] = unix_pair();
  UniqueFd end = relay_bytes(ForeignFd(std::move(here)));
  tell(there, "hello");
  EXPECT_EQ(hear(end), "hello");
  const UniqueFd itself = relayed_connection(end.get());
  ASSERT_TRUE(itself);
  end.reset();
  ASSERT_TRUE(send_files(there.get(), {itself.get()}, 'f'));
  pollfd wait{itself.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&wait, 1, -1), 1);
  std::vector<ForeignFd> files;
  bool cut = false;
  char byte = 0;
  EXPECT_EQ(receive_with_rights(itself.get(), &byte, 1, &files, &cut), 1);
  EXPECT_EQ(byte, 'f');
  EXPECT_EQ(files.size(), 1u);
  tell(itself, "welcome");
  EXPECT_EQ(hear(there), "welcome");
  EXPECT_FALSE(relayed_connection(there.get()));
}

/// In some of these rounds, the relay's thread is reading from the peer when the connection is requested: the
/// peer sends much data, and each round waits a little longer.
TEST(SocketRelay, HandsOverAConnectionWhosePeerIsSending) {
  const std::string much(100 << 10, 'm');
  for (int round = 0; round < 1000; ++round) {
    auto [here, there] = unix_pair();
    const UniqueFd end = relay_bytes(ForeignFd(std::move(here)));
    ASSERT_TRUE(end);
    ASSERT_GT(::send(there.get(), much.data(), much.size(), MSG_DONTWAIT), 0);
    const auto begins = std::chrono::steady_clock::now() + std::chrono::microseconds(round % 250);
    while (std::chrono::steady_clock::now() < begins) {
    }
    ASSERT_TRUE(relayed_connection(end.get())) << "round " << round;
  }
}

}  // namespace
}  // namespace rdma_rpc::fabric::test
