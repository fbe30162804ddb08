// See words.h.
#include "perf/program/words.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

namespace rdma_rpc::perf {
namespace {

constexpr std::string_view kHex = "0123456789ABCDEF";

/// Decodes `%41` and `+` to the characters that they encode.
std::string decoded(std::string_view text) {
  std::string all;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, code, 16).ptr == text.data() + i + 3) {
      all.push_back(static_cast<char>(code));
      i += 2;
    } else {
      all.push_back(text[i] == '+' ? ' ' : text[i]);
    }
  }
  return all;
}

bool is_plain(char letter) {
  return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
         (letter >= 'A' && letter <= 'Z') || letter == '-' || letter == '.' || letter == '_';
}

}  // namespace

Words::Words(std::string_view line) {
  const std::size_t space = line.find(' ');
  name_ = line.substr(0, space);
  if (space == std::string_view::npos) return;
  std::string_view rest = line.substr(space + 1);
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const std::size_t equals = pair.find('=');
    if (equals != std::string_view::npos)
      all_[decoded(pair.substr(0, equals))] = decoded(pair.substr(equals + 1));
  }
}

std::string Words::text(const std::string& key) const {
  const auto found = all_.find(key);
  return found == all_.end() ? std::string() : found->second;
}

std::uint64_t Words::number(const std::string& key) const {
  const std::string digits = text(key);
  std::uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

Line& Line::text(std::string_view key, std::string_view value) {
  all_.push_back(separator_);
  separator_ = '&';
  all_.append(key).push_back('=');
  for (const char letter : value) {
    if (is_plain(letter)) {
      all_.push_back(letter);
      continue;
    }
    const auto code = static_cast<unsigned char>(letter);
    all_.push_back('%');
    all_.push_back(kHex[code >> 4]);
    all_.push_back(kHex[code & 15]);
  }
  return *this;
}

Line& Line::number(std::string_view key, double value) {
  std::array<char, 32> digits{};
  std::snprintf(digits.data(), digits.size(), "%.17g", value);
  return text(key, digits.data());
}

}  // namespace rdma_rpc::perf
