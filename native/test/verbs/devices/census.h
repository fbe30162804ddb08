// What this process and its devices have open, counted from outside of our code: descriptors in /proc, verbs
// objects as the kernel counts them. Taken before and after each test of native/test/verbs.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <string>

namespace rdma_rpc::session::test {

/// What each descriptor of this process leads to, and how many do.
std::map<std::string, std::size_t> descriptors();

/// A text, so that a difference can be read.
std::string census();

/// Every test here: whatever happens in it, nothing may be left behind. The members of a fixture come and go
/// in between.
class VerbsFaults : public testing::Test {
 protected:
  VerbsFaults() : before_(census()) {}
  ~VerbsFaults() override;

 private:
  const std::string before_;
};

}  // namespace rdma_rpc::session::test
