// Builds a JSON text of names and numbers, which is all that the counters page needs to describe itself.
// counters_page.cc uses it once for each context.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace rdma_rpc::telemetry {

class Json {
 public:
  Json& text(std::string_view text) {
    all_.push_back('"');
    for (const char each : text) {
      if (static_cast<unsigned char>(each) >= 0x20 && each != '"' && each != '\\') all_.push_back(each);
    }
    all_.push_back('"');
    return *this;
  }
  Json& key(std::string_view name) {
    comma();
    text(name).all_.push_back(':');
    return *this;
  }
  Json& number(std::string_view name, std::size_t value) {
    key(name).all_.append(std::to_string(value));
    return *this;
  }
  Json& names(std::string_view name, std::span<const char* const> names) {
    key(name).all_.push_back('[');
    for (const char* each : names) {
      comma();
      text(each);
    }
    all_.push_back(']');
    return *this;
  }
  Json& open() {
    all_.push_back('{');
    return *this;
  }
  Json& close() {
    all_.push_back('}');
    return *this;
  }
  const std::string& all() const { return all_; }

 private:
  void comma() {
    if (!all_.empty() && all_.back() != '{' && all_.back() != '[') all_.push_back(',');
  }
  std::string all_;
};

}  // namespace rdma_rpc::telemetry
