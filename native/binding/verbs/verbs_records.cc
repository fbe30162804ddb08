// See verbs_records.h.
#include "binding/verbs/verbs_records.h"

#include <initializer_list>
#include <utility>

#include "checked/records.h"

namespace rdma_rpc::binding {

Napi::Value verbs_records(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  auto result = Napi::Object::New(env);
  const auto group = [&](const char* name,
                         std::initializer_list<std::pair<const char*, std::size_t>> values) {
    auto object = Napi::Object::New(env);
    for (const auto& [key, value] : values) object.Set(key, static_cast<double>(value));
    result.Set(name, object);
  };
  namespace send = checked::send_record;
  namespace sge = checked::sge_record;
  namespace recv = checked::recv_record;
  namespace done = checked::completion_record;
  group("SendRow", {{"wrId", send::wr_id},
                    {"opcode", send::opcode},
                    {"flags", send::flags},
                    {"sges", send::sges},
                    {"remoteAddr", send::remote_addr},
                    {"rkey", send::rkey},
                    {"imm", send::imm},
                    {"invalidateRkey", send::invalidate_rkey},
                    {"compareHigh", send::compare_high},
                    {"compareLow", send::compare_low},
                    {"swapHigh", send::swap_high},
                    {"swapLow", send::swap_low},
                    {"ah", send::ah},
                    {"remoteQpn", send::remote_qpn},
                    {"remoteQkey", send::remote_qkey},
                    {"header", send::header}});
  group("SgeRow", {{"addr", sge::addr}, {"length", sge::length}, {"lkey", sge::lkey}, {"words", sge::words}});
  group("RecvRow", {{"wrId", recv::wr_id},
                    {"addr", recv::addr},
                    {"length", recv::length},
                    {"lkey", recv::lkey},
                    {"words", recv::words}});
  group("CompletionRow", {{"wrId", done::wr_id},
                          {"status", done::status},
                          {"opcode", done::opcode},
                          {"flags", done::flags},
                          {"qpNum", done::qp_num},
                          {"bytes", done::bytes},
                          {"imm", done::imm},
                          {"invalidatedRkey", done::invalidated_rkey},
                          {"srcQp", done::src_qp},
                          {"words", done::words}});
  return result;
}

}  // namespace rdma_rpc::binding
