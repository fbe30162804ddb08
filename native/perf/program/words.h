// Parses and formats a line that the program of `rdma-rpc perf` reads or writes: a word, followed by fields
// as in the query of a URL, such as `stop expected=12`. At the other end of the pipe, JS parses such fields
// with URLSearchParams.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace rdma_rpc::perf {

/// A parsed line. A field that is absent reads as the empty text, 0 or false.
class Words {
 public:
  explicit Words(std::string_view line);

  const std::string& name() const { return name_; }
  std::string text(const std::string& key) const;
  std::uint64_t number(const std::string& key) const;
  std::uint32_t small(const std::string& key) const { return static_cast<std::uint32_t>(number(key)); }
  bool has(const std::string& key) const { return all_.contains(key); }
  /// Returns true for the text that JS creates from `true`.
  bool is(const std::string& key) const { return text(key) == "true"; }

 private:
  std::string name_;
  std::map<std::string, std::string> all_;
};

/// A line that is being composed.
class Line {
 public:
  explicit Line(std::string_view name) : all_(name) {}

  Line& text(std::string_view key, std::string_view value);
  Line& number(std::string_view key, std::uint64_t value) { return text(key, std::to_string(value)); }
  Line& number(std::string_view key, double value);
  /// Returns the line with its end of line.
  std::string all() const { return all_ + '\n'; }

 private:
  std::string all_;
  char separator_ = ' ';
};

}  // namespace rdma_rpc::perf
