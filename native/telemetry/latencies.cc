// See latencies.h.
#include "telemetry/latencies.h"

namespace rdma_rpc::telemetry {
namespace {

/// Terminates the name with a zero, and cuts a long name at a character boundary of UTF-8.
void put_name(MethodRow& row, std::string_view text) {
  std::size_t bytes = std::min(text.size(), kMethodNameBytes - 1);
  while (bytes < text.size() && bytes != 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) {
    --bytes;
  }
  std::memcpy(row.name, text.data(), bytes);
  row.name[bytes] = 0;
}

}  // namespace

/// A client calls methods of its own choice, so each method gets an entry. Calls that a server receives may
/// name invented methods. Therefore only the methods that the server has named get entries.
MethodRow& Latencies::find(std::uint32_t method, bool client, std::uint32_t key) {
  std::uint32_t at = 0;
  while (at < used_ && (rows_[at].id != method || rows_[at].client != (client ? 1 : 0))) ++at;
  if (at == used_) {
    const auto known = names_.find(method);
    const bool named = known != names_.end();
    if (used_ == kMethodRows - 2 || (!client && !named)) return others(client);
    ++used_;
    rows_[at].client = client ? 1 : 0;
    if (named) put_name(rows_[at], known->second);
    rows_[at].id = method;  // This comes last, because a reader uses entries that have an id.
  }
  slots_[key & (slots_.size() - 1)] = static_cast<std::uint8_t>(at);
  return rows_[at];
}

MethodRow& Latencies::others(bool client) {
  MethodRow& row = rows_[kMethodRows - (client ? 1 : 2)];
  if (row.id == 0) {
    row.client = client ? 1 : 0;
    put_name(row, "(other methods)");
    row.id = kOtherMethods;
  }
  return row;
}

void Latencies::name(std::uint32_t method, std::string_view text) {
  if (names_.size() < kMethodNamesMax) names_.try_emplace(method, text.substr(0, kMethodNameBytes));
  for (std::uint32_t at = 0; at < used_; ++at) {
    if (rows_[at].id == method) put_name(rows_[at], text);
  }
}

}  // namespace rdma_rpc::telemetry
