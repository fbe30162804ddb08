// Passes the constants of session/boundary.h, and the limits that both languages use, to JS as one object. A
// test compares them with runtime/native/words.ts and runtime/limits.ts.
#pragma once

#include <napi.h>

#include "fabric/versions.h"
#include "memory/arena.h"
#include "session/boundary.h"
#include "session/limits.h"
#include "session/link/sealing.h"

namespace rdma_rpc::binding {

inline Napi::Object boundary_constants(Napi::Env env) {
  namespace boundary = session::boundary;
  auto result = Napi::Object::New(env);
  const auto group = [&](const char* name,
                         std::initializer_list<std::pair<const char*, std::int64_t>> values) {
    auto object = Napi::Object::New(env);
    for (const auto& [key, value] : values) object.Set(key, static_cast<double>(value));
    result.Set(name, object);
  };
  namespace sub = boundary::sub;
  namespace ev = boundary::ev;
  namespace ctl = boundary::ctl;
  namespace gather_entry = boundary::gather_entry;
  using boundary::EvKind;
  using boundary::Reason;
  group("Sub", {{"op", sub::op},
                {"session", sub::session},
                {"call", sub::call},
                {"method", sub::method},
                {"status", sub::status},
                {"slot", sub::slot},
                {"metadataBytes", sub::metadata_bytes},
                {"messageBytes", sub::message_bytes},
                {"timeoutUs", sub::timeout_us},
                {"words", sub::words}});
  group("GatherEntry", {{"block", gather_entry::block},
                        {"offset", gather_entry::offset},
                        {"bytes", gather_entry::bytes},
                        {"lent", gather_entry::lent},
                        {"words", gather_entry::words}});
  group("SubOp", {{"request", static_cast<int>(boundary::SubOp::request)},
                  {"response", static_cast<int>(boundary::SubOp::response)},
                  {"part", static_cast<int>(boundary::SubOp::part)}});
  group("Ev", {{"kind", ev::kind},
               {"session", ev::session},
               {"call", ev::call},
               {"token", ev::token},
               {"keyLow", ev::key_low},
               {"method", ev::method},
               {"status", ev::status},
               {"pendingRelease", ev::pending_release},
               {"keyHigh", ev::key_high},
               {"region", ev::region},
               {"offset", ev::offset},
               {"aligned", ev::aligned},
               {"metadataBytes", ev::metadata_bytes},
               {"messageBytes", ev::message_bytes},
               {"timeoutUs", ev::timeout_us},
               {"reason", ev::reason},
               {"refusedBytes", ev::refused_bytes},
               {"metadataOffset", ev::metadata_offset},
               {"processed", ev::processed},
               {"part", ev::part},
               {"receiveSlot", ev::receive_slot},
               {"words", ev::words}});
  group("EvKind", {{"request", static_cast<int>(EvKind::request)},
                   {"settled", static_cast<int>(EvKind::settled)},
                   {"failed", static_cast<int>(EvKind::failed)},
                   {"cancelled", static_cast<int>(EvKind::cancelled)},
                   {"sent", static_cast<int>(EvKind::sent)},
                   {"sessionDown", static_cast<int>(EvKind::session_down)},
                   {"slotsFree", static_cast<int>(EvKind::slots_free)},
                   {"evicted", static_cast<int>(EvKind::evicted)},
                   {"sessionUp", static_cast<int>(EvKind::session_up)},
                   {"partWaits", static_cast<int>(EvKind::part_waits)},
                   {"released", static_cast<int>(EvKind::released)},
                   {"memoryFree", static_cast<int>(EvKind::memory_free)},
                   {"memoryShort", static_cast<int>(EvKind::memory_short)},
                   {"deviceGone", static_cast<int>(EvKind::device_gone)}});
  using memory::Use;
  group("Use", {{"part", static_cast<int>(Use::part)},
                {"request", static_cast<int>(Use::request)},
                {"response", static_cast<int>(Use::response)},
                {"application", static_cast<int>(Use::application)}});
  group("Reason", {{"sessionLost", static_cast<int>(Reason::session_lost)},
                   {"cancelled", static_cast<int>(Reason::cancelled)},
                   {"deadline", static_cast<int>(Reason::deadline)},
                   {"noMemory", static_cast<int>(Reason::no_memory)},
                   {"tooLarge", static_cast<int>(Reason::too_large)},
                   {"registration", static_cast<int>(Reason::registration)},
                   {"staging", static_cast<int>(Reason::staging)},
                   {"detached", static_cast<int>(Reason::detached)},
                   {"registering", static_cast<int>(Reason::registering)}});
  group("Ctl", {{"staged", ctl::staged},
                {"freeSlots", ctl::free_slots},
                {"inCallback", ctl::in_callback},
                {"wantSlots", ctl::want_slots},
                {"wantMemory", ctl::want_memory},
                {"sessions", ctl::sessions},
                {"retries", ctl::retries},
                {"shortBytes", ctl::short_bytes},
                {"words", ctl::words}});
  group("Slots", {{"held", boundary::slots::held},
                  {"wanted", boundary::slots::wanted},
                  {"words", boundary::slots::words}});
  group("PendingRelease",
        {{"slot", boundary::pending_slot}, {"replyBuffer", boundary::pending_reply_buffer}});
  group("Flags", {{"notRun", boundary::kNotRun},
                  {"aligned", static_cast<int>(boundary::kAligned)},
                  {"replyBufferOnly", static_cast<int>(boundary::kReplyBufferOnly)},
                  {"leasedMemory", boundary::kLeasedMemory},
                  {"copiedMemory", boundary::kCopiedMemory},
                  {"receiveSlab", boundary::kReceiveSlab},
                  {"reassembledMessage", boundary::kReassembledMessage},
                  {"shortMessageSlots", static_cast<int>(boundary::kShortMessageSlots)},
                  {"firstWindowBits", static_cast<int>(boundary::kFirstWindowBits)}});
  group("Versions", {{"shm", fabric::kShmVersion},
                     {"shm-fd", fabric::kShmVersion},
                     {"verbs", fabric::kVerbsVersion},
                     {"tcp", fabric::kTcpVersion}});
  group("Limits", {{"callSlots", session::kCallSlotsMax},
                   {"sessionIndexMask", session::kSessionsMax - 1},
                   {"slotShare", session::kSlotShare},
                   {"reservedSlots", session::kReservedSlots},
                   {"receivesBesides", session::kControlReceives + session::kOverflowSlots},
                   {"slotHeadBytes", session::kSlotHeadroom},
                   {"memoryWaitMs", session::kMemoryWaitNs / 1'000'000},
                   {"gatherEntriesMax", session::kGatherEntriesMax},
                   {"sealChunkBytes", session::kSealChunkBytes},
                   {"sealTagBytes", seal::kTagBytes}});
  return result;
}

}  // namespace rdma_rpc::binding
