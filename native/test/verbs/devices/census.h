// Counts the resources that this process and its devices have open, counted from outside our code:
// descriptors in /proc, and verbs objects as the kernel counts them. The resources are counted before and
// after each test of native/test/verbs.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <string>

namespace rdma_rpc::session::test {

/// Returns the targets of this process's descriptors, each with the number of descriptors.
std::map<std::string, std::size_t> descriptors();

/// Returns the census as text, so that a difference is readable.
std::string census();

/// The base of every test here: each test, even one that fails, must leave nothing open. The members of a
/// fixture are created and destroyed in between.
class VerbsFaults : public testing::Test {
 protected:
  VerbsFaults() : before_(census()) {}
  ~VerbsFaults() override;

 private:
  const std::string before_;
};

}  // namespace rdma_rpc::session::test
